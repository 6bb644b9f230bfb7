{{/* Name of all objects of the release, short enough for the longest suffix. */}}
{{- define "tallyhook.fullname" -}}
{{- $own := ternary .Release.Name (printf "%s-tallyhook" .Release.Name) (contains "tallyhook" .Release.Name) -}}
{{- .Values.fullnameOverride | default $own | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* What a selector matches: these may never change. Takes {root, component}. */}}
{{- define "tallyhook.selector" -}}
app.kubernetes.io/name: tallyhook
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .shard }}
tallyhook/shard: {{ . | quote }}
{{- end }}
{{- end }}

{{/* Labels of an object. Takes {root, component}. */}}
{{- define "tallyhook.labels" -}}
{{ include "tallyhook.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "tallyhook.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}
