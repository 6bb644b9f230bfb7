{{/* Folders and secrets of one pod; see tallyhook.podTemplate; a {probe} does not speak to Kafka. The modes let group 10001 read and nobody write. */}}
{{- define "tallyhook.volumes" -}}
{{- $values := .root.Values -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- if not .probe }}
{{- with $values.kafka.sasl }}
{{- if .existingSecret }}
- name: kafka-sasl
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items: [{key: {{ .passwordKey | quote }}, path: password}]
{{- end }}
{{- end }}
{{- with $values.kafka.tls }}
{{- if .existingSecret }}
- name: kafka-tls
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      - {key: {{ .caKey | quote }}, path: ca.crt}
      {{- if .certificateKey }}
      - {key: {{ .certificateKey | quote }}, path: tls.crt}
      - {key: {{ .privateKeyKey | quote }}, path: tls.key}
      {{- end }}
      {{- if .privateKeyPasswordKey }}
      - {key: {{ .privateKeyPasswordKey | quote }}, path: key-password}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if .database }}
{{- with $values.database }}
{{- if .existingSecret }}
- name: database
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items:
      {{- if .passwordKey }}
      - {key: {{ .passwordKey | quote }}, path: password}
      {{- end }}
      {{- if .urlKey }}
      - {key: {{ .urlKey | quote }}, path: url}
      {{- end }}
{{- end }}
{{- if .tls.existingSecret }}
- name: database-tls
  secret:
    secretName: {{ .tls.existingSecret }}
    # libpq refuses a key that more than its owner and group may read.
    defaultMode: 0440
    items:
      - {key: {{ .tls.caKey | quote }}, path: ca.crt}
      {{- if .tls.certificateKey }}
      - {key: {{ .tls.certificateKey | quote }}, path: tls.crt}
      - {key: {{ .tls.privateKeyKey | quote }}, path: tls.key}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if .keys }}
{{- with $values.ingress.publicKeys }}
{{- if .existingSecret }}
- name: public-keys
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    items: [{key: {{ .key | quote }}, path: public-keys}]
{{- end }}
{{- end }}
{{- with $values.ingress.endpoints.existingSecret }}
# Whole, because the file of endpoints names files of keys that lie beside it.
- name: endpoints
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- if eq (.data | default "") "emptyDir" }}
- name: data
  emptyDir: {}
{{- end }}
{{- if .probe }}
- name: signing-key
  secret:
    secretName: {{ $values.helmTest.signingKey.existingSecret }}
    defaultMode: 0440
    items: [{key: {{ $values.helmTest.signingKey.key | quote }}, path: signing-key}]
- name: probe
  configMap:
    name: {{ include "tallyhook.fullname" .root }}-test
{{- end }}
{{- end }}

{{/* Where the container finds them. */}}
{{- define "tallyhook.volumeMounts" -}}
{{- $values := .root.Values -}}
- {name: tmp, mountPath: /tmp}
{{- if and $values.kafka.sasl.existingSecret (not .probe) }}
- {name: kafka-sasl, mountPath: /etc/tallyhook/kafka-sasl, readOnly: true}
{{- end }}
{{- if and $values.kafka.tls.existingSecret (not .probe) }}
- {name: kafka-tls, mountPath: /etc/tallyhook/kafka-tls, readOnly: true}
{{- end }}
{{- if and .database $values.database.existingSecret }}
- {name: database, mountPath: /etc/tallyhook/database, readOnly: true}
{{- end }}
{{- if and .database $values.database.tls.existingSecret }}
- {name: database-tls, mountPath: /etc/tallyhook/database-tls, readOnly: true}
{{- end }}
{{- if and .keys $values.ingress.publicKeys.existingSecret }}
- {name: public-keys, mountPath: /etc/tallyhook/public-keys, readOnly: true}
{{- end }}
{{- if and .keys $values.ingress.endpoints.existingSecret }}
- {name: endpoints, mountPath: /etc/tallyhook/endpoints, readOnly: true}
{{- end }}
{{- if .data }}
- {name: data, mountPath: /var/lib/tallyhook/streams}
{{- end }}
{{- if .probe }}
- {name: signing-key, mountPath: /etc/tallyhook/signing-key, readOnly: true}
- {name: probe, mountPath: /etc/tallyhook/probe, readOnly: true}
{{- end }}
{{- end }}
