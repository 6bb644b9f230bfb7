{{/*
The pod of one component. Takes {root, component, args, port, database, keys, data, grace, resources,
annotations, env, labels}; `database`, `keys`, `data` say which secrets and folders are mounted.
*/}}
{{- define "tallyhook.podTemplate" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "tallyhook.selector" . | nindent 4 }}
    {{- with $root.Values.pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed setting replaces the pods: they read their environment once.
    tallyhook/settings-checksum: {{ include "tallyhook.settings" $root | sha256sum }}
    {{- with .annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "tallyhook.podSpec" . | nindent 2 }}
  {{- with $root.Values.pod.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- else }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "tallyhook.selector" . | nindent 10 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .grace }}
  containers:
    - name: {{ .component }}
      {{- include "tallyhook.container" . | nindent 6 }}
      envFrom:
        - configMapRef:
            name: {{ include "tallyhook.fullname" $root }}
      {{- with .env }}
      env:
        {{- . | trim | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .port }}
      # A start may replay a changelog or wait for a database: minutes are allowed before liveness counts.
      startupProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 90
      # Only whether the process turns: a dependency that is away is no reason to start it anew.
      livenessProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 1
{{- end }}

{{/* What deployments and jobs have in common above their containers. */}}
{{- define "tallyhook.podSpec" -}}
{{- $root := .root -}}
# The cluster would put variables such as TALLYHOOK_INGRESS_PORT=tcp://... beside the settings of the same names.
enableServiceLinks: false
automountServiceAccountToken: false
{{- with $root.Values.pod.serviceAccountName }}
serviceAccountName: {{ . }}
{{- end }}
{{- with $root.Values.pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 64Mi}
  {{- with $root.Values.kafka.sasl }}
  {{- if .existingSecret }}
  - name: kafka-sasl
    secret:
      secretName: {{ .existingSecret }}
      defaultMode: 0440
      items: [{key: {{ .passwordKey | quote }}, path: password}]
  {{- end }}
  {{- end }}
  {{- with $root.Values.kafka.tls }}
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
  {{- if .database }}
  {{- with $root.Values.database }}
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
  {{- if .tlsExistingSecret }}
  - name: database-tls
    secret:
      secretName: {{ .tlsExistingSecret }}
      defaultMode: 0440
  {{- end }}
  {{- end }}
  {{- end }}
  {{- if .keys }}
  {{- with $root.Values.ingress.publicKeys }}
  {{- if .existingSecret }}
  - name: public-keys
    secret:
      secretName: {{ .existingSecret }}
      defaultMode: 0440
      items: [{key: {{ .key | quote }}, path: public-keys}]
  {{- end }}
  {{- end }}
  {{- with $root.Values.ingress.endpoints.existingSecret }}
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
{{- end }}

{{/* What all containers have in common. Secrets are mounted as folders, so that a changed one arrives. */}}
{{- define "tallyhook.container" -}}
{{- $root := .root -}}
image: {{ include "tallyhook.image" $root | quote }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
args: {{ toJson .args }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
resources:
  {{- toYaml .resources | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if $root.Values.kafka.sasl.existingSecret }}
  - {name: kafka-sasl, mountPath: /etc/tallyhook/kafka-sasl, readOnly: true}
  {{- end }}
  {{- if $root.Values.kafka.tls.existingSecret }}
  - {name: kafka-tls, mountPath: /etc/tallyhook/kafka-tls, readOnly: true}
  {{- end }}
  {{- if and .database $root.Values.database.existingSecret }}
  - {name: database, mountPath: /etc/tallyhook/database, readOnly: true}
  {{- end }}
  {{- if and .database $root.Values.database.tlsExistingSecret }}
  - {name: database-tls, mountPath: /etc/tallyhook/database-tls, readOnly: true}
  {{- end }}
  {{- if and .keys $root.Values.ingress.publicKeys.existingSecret }}
  - {name: public-keys, mountPath: /etc/tallyhook/public-keys, readOnly: true}
  {{- end }}
  {{- if and .keys $root.Values.ingress.endpoints.existingSecret }}
  - {name: endpoints, mountPath: /etc/tallyhook/endpoints, readOnly: true}
  {{- end }}
  {{- if .data }}
  - {name: data, mountPath: /var/lib/tallyhook/streams}
  {{- end }}
{{- end }}
