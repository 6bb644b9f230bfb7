{{/*
What the pods of one component may speak to. Takes {root, component, port, from, kafka, database, door}: `from` are the
peers that may call the port (none: everybody); the others say what is reached.
*/}}
{{- define "tallyhook.networkPolicy" -}}
{{- $network := .root.Values.networkPolicy -}}
{{- if $network.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "tallyhook.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "tallyhook.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- if .port }}
  ingress:
    - ports:
        - {port: {{ .port }}, protocol: TCP}
      {{- with .from }}
      from:
        {{- toYaml . | nindent 8 }}
        {{- if eq $.component "ingress" }}
        # `helm test`, of this release or of another one in its namespace.
        - podSelector:
            matchLabels:
              app.kubernetes.io/name: tallyhook
              app.kubernetes.io/component: test
        {{- end }}
      {{- end }}
  {{- end }}
  egress:
    - ports:
        - {port: 53, protocol: UDP}
        - {port: 53, protocol: TCP}
    {{- if .kafka }}
    - ports:
        {{- range $network.kafkaPorts | default (include "tallyhook.kafkaPorts" .root | splitList ",") }}
        - {port: {{ int . }}, protocol: TCP}
        {{- end }}
      {{- with $network.kafkaTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- if .database }}
    - ports:
        {{- range $network.databasePorts }}
        - {port: {{ int . }}, protocol: TCP}
        {{- end }}
      {{- with $network.databaseTo }}
      to:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- if .door }}
    # By the port of the pods: a policy is judged behind the service.
    - ports:
        - {port: 8080, protocol: TCP}
        - {port: {{ .root.Values.ingress.service.port }}, protocol: TCP}
        - {port: 443, protocol: TCP}
    {{- end }}
    {{- with $network.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}

{{/* The ports of kafka.bootstrap, each once. */}}
{{- define "tallyhook.kafkaPorts" -}}
{{- $ports := list -}}
{{- range splitList "," .Values.kafka.bootstrap -}}
{{- $ports = append $ports (splitList ":" . | last) -}}
{{- end -}}
{{- $ports | uniq | join "," -}}
{{- end }}
