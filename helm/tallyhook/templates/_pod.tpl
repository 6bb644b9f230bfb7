{{/*
The pod of one component. Takes {root, component, values, args, port, database, keys, data, grace, preStop, env, shard};
`values` are the component's, `database`, `keys`, `data` say which secrets and folders are mounted.
*/}}
{{- define "tallyhook.podTemplate" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "tallyhook.podLabels" . | nindent 4 }}
  annotations:
    # A changed setting replaces the pods: they read their environment once.
    tallyhook/settings-checksum: {{ include "tallyhook.settings" $root | sha256sum }}
    {{- with merge (dict) (.values.pod.annotations | default dict) $root.Values.pod.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "tallyhook.podSpec" . | nindent 2 }}
  {{- with .values.pod.topologySpreadConstraints | default $root.Values.pod.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- else }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "tallyhook.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .grace }}
  containers:
    - name: {{ .component }}
      {{- include "tallyhook.container" . | nindent 6 }}
      envFrom:
        - configMapRef:
            name: {{ include "tallyhook.fullname" $root }}
      {{- $extra := include "tallyhook.extraEnv" . | trim }}
      {{- if or .env $extra }}
      env:
        {{- with .env }}
        {{- . | trim | nindent 8 }}
        {{- end }}
        {{- with $extra }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ .port }}
      {{- with .preStop }}
      lifecycle:
        preStop:
          exec:
            command: [sleep, {{ . | quote }}]
      {{- end }}
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

{{- define "tallyhook.podLabels" -}}
{{- include "tallyhook.selector" . }}
{{- with merge (dict) (.values.pod.labels | default dict) .root.Values.pod.labels .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What deployments and jobs have in common above their containers. */}}
{{- define "tallyhook.podSpec" -}}
{{- $all := .root.Values.pod -}}
{{- $own := .values.pod -}}
# The cluster would put variables such as TALLYHOOK_INGRESS_PORT=tcp://... beside the settings of the same names.
enableServiceLinks: false
automountServiceAccountToken: false
serviceAccountName: {{ .serviceAccountName | default (include "tallyhook.serviceAccountName" .) }}
{{- with $own.priorityClassName | default $all.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.nodeSelector | default $all.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat $all.tolerations ($own.tolerations | default list) }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $own.affinity | default $all.affinity }}
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
  {{- include "tallyhook.volumes" . | nindent 2 }}
  {{- with concat $all.extraVolumes ($own.extraVolumes | default list) }}
  {{- toYaml . | nindent 2 }}
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
  {{- toYaml .values.resources | nindent 2 }}
volumeMounts:
  {{- include "tallyhook.volumeMounts" . | nindent 2 }}
  {{- with concat $root.Values.pod.extraVolumeMounts (.values.pod.extraVolumeMounts | default list) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Variables of the user's own; a name that the chart gives a value would be overwritten for one pod alone. */}}
{{- define "tallyhook.extraEnv" -}}
{{- $made := concat (fromYaml (include "tallyhook.settings" .root) | keys) (list "TALLYHOOK_RELAY_SHARD"
    "TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE" "TALLYHOOK_INGRESS_ENDPOINTS_FILE" "TALLYHOOK_DATABASE_URL" "TALLYHOOK_DATABASE_URL_FILE" "TALLYHOOK_DATABASE_PASSWORD_FILE") -}}
{{- range concat .root.Values.pod.extraEnv (.values.pod.extraEnv | default list) }}
{{- if has .name $made }}
{{- fail (printf "extraEnv: %s is made by the chart from another value: set it there, or under settings." .name) }}
{{- end }}
- {{ toJson . }}
{{- end }}
{{- end }}
