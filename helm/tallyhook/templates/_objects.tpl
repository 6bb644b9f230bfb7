{{/* Objects that several components have. Each takes {root, component, values}, and {shard} where there are shards. */}}

{{- define "tallyhook.serviceAccount" -}}
{{- if .values.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- $name := include "tallyhook.serviceAccountName" . }}
  {{- $own := dict "name" $name "objectAnnotations" .values.serviceAccount.annotations }}
  {{- include "tallyhook.metadata" (merge (dict) $own .) | nindent 2 }}
# No process speaks to the cluster.
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{- define "tallyhook.podDisruptionBudget" -}}
{{- if .values.podDisruptionBudget.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "tallyhook.metadata" . | nindent 2 }}
spec:
  # An upper limit of absent pods, not a lower one of present pods: a single replica can still be moved.
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  # A pod that is not ready may always be taken away: it would otherwise block the drain of its node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "tallyhook.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{/* A service for what scrapes and for people; it has no address of its own. Takes {port} too. */}}
{{- define "tallyhook.headlessService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "tallyhook.metadata" . | nindent 2 }}
spec:
  clusterIP: None
  # A pod that is not ready says in its metrics why.
  publishNotReadyAddresses: true
  selector:
    {{- include "tallyhook.selector" . | nindent 4 }}
  ports:
    - name: http
      port: {{ .port }}
      targetPort: http
{{- end }}

{{- define "tallyhook.serviceMonitor" -}}
{{- with .root.Values.monitoring.serviceMonitor -}}
{{- if .enabled -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  {{- include "tallyhook.metadata" (merge (dict "objectLabels" .labels) $) | nindent 2 }}
spec:
  # The label `job` of every series: tallyhook-{{ $.component }}.
  selector:
    matchLabels:
      {{- include "tallyhook.selector" $ | nindent 6 }}
  endpoints:
    - port: http
      path: /metrics
      interval: {{ .interval }}
      scrapeTimeout: {{ .scrapeTimeout }}
      relabelings:
        - {targetLabel: job, replacement: tallyhook-{{ $.component }}}
        {{- with .relabelings }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Takes {kind, topic, group} too: what is scaled, and by whose lag on which topic. */}}
{{- define "tallyhook.scaledObject" -}}
{{- $root := .root -}}
{{- with .values.keda -}}
{{- if .enabled -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "tallyhook.metadata" $ | nindent 2 }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: {{ $.kind }}
    name: {{ include "tallyhook.name" $ }}
  minReplicaCount: {{ .minReplicas }}
  maxReplicaCount: {{ .maxReplicas }}
  pollingInterval: {{ .pollingIntervalSeconds }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleDown:
          stabilizationWindowSeconds: {{ .scaleDownAfterSeconds }}
          policies:
            - {type: Pods, value: 1, periodSeconds: 120}
  triggers:
    - type: kafka
      metadata:
        bootstrapServers: {{ $root.Values.kafka.bootstrap | quote }}
        consumerGroup: {{ printf "%s.%s.%s" $root.Values.installation.topicPrefix $root.Values.installation.schema $.group | quote }}
        topic: {{ printf "%s.%s" $root.Values.installation.topicPrefix $.topic | quote }}
        lagThreshold: {{ include "tallyhook.text" .lagThreshold | quote }}
        # What was never read waits as well.
        offsetResetPolicy: earliest
        allowIdleConsumers: "false"
        {{- with $root.Values.kafka.sasl.mechanism }}
        sasl: {{ get (dict "PLAIN" "plaintext" "SCRAM-SHA-256" "scram_sha256" "SCRAM-SHA-512" "scram_sha512") . }}
        {{- end }}
        {{- if hasSuffix "SSL" $root.Values.kafka.securityProtocol }}
        tls: enable
        {{- end }}
      {{- if ne $root.Values.kafka.securityProtocol "PLAINTEXT" }}
      authenticationRef:
        name: {{ include "tallyhook.name" $ }}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* How KEDA reaches Kafka: with the secrets of the pods, and the user's name from their environment. */}}
{{- define "tallyhook.triggerAuthentication" -}}
{{- $kafka := .root.Values.kafka -}}
{{- if and .values.keda.enabled (ne $kafka.securityProtocol "PLAINTEXT") -}}
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata:
  {{- include "tallyhook.metadata" . | nindent 2 }}
spec:
  {{- if $kafka.sasl.mechanism }}
  env:
    - {parameter: username, name: TALLYHOOK_KAFKA_SASL_USERNAME, containerName: {{ .component }}}
  {{- end }}
  secretTargetRef:
    {{- with $kafka.sasl.existingSecret }}
    - {parameter: password, name: {{ . }}, key: {{ $kafka.sasl.passwordKey | quote }}}
    {{- end }}
    {{- with $kafka.tls.existingSecret }}
    - {parameter: ca, name: {{ . }}, key: {{ $kafka.tls.caKey | quote }}}
    {{- if $kafka.tls.certificateKey }}
    - {parameter: cert, name: {{ . }}, key: {{ $kafka.tls.certificateKey | quote }}}
    - {parameter: key, name: {{ . }}, key: {{ $kafka.tls.privateKeyKey | quote }}}
    {{- end }}
    {{- if $kafka.tls.privateKeyPasswordKey }}
    - {parameter: keyPassword, name: {{ . }}, key: {{ $kafka.tls.privateKeyPasswordKey | quote }}}
    {{- end }}
    {{- end }}
{{- end }}
{{- end }}
