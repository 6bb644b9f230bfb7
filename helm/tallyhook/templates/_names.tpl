{{/* Name of all objects of the release, short enough for the longest suffix. */}}
{{- define "tallyhook.fullname" -}}
{{- $own := ternary .Release.Name (printf "%s-tallyhook" .Release.Name) (contains "tallyhook" .Release.Name) -}}
{{- .Values.fullnameOverride | default $own | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Name of one object. Takes {root, component}, and {shard} where the component has shards. */}}
{{- define "tallyhook.name" -}}
{{- include "tallyhook.fullname" .root }}-{{ .component }}{{ with .shard }}-{{ . }}{{ end }}
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
{{- with merge (dict) (.objectLabels | default dict) .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
Name, labels and annotations of an object. Takes {root, component}; {shard, objectLabels, objectAnnotations, hook,
namespace, name} where there are any. `hook` is {events, weight}.
*/}}
{{- define "tallyhook.metadata" -}}
name: {{ .name | default (include "tallyhook.name" .) }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "tallyhook.labels" . | nindent 2 }}
{{- $annotations := merge (dict) (.objectAnnotations | default dict) .root.Values.commonAnnotations }}
{{- if or $annotations .hook }}
annotations:
  {{- with .hook }}
  helm.sh/hook: {{ .events }}
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: {{ .deletePolicy | default "before-hook-creation" }}
  {{- end }}
  {{- with $annotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "tallyhook.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Name of a component's service account. Takes {root, component, values}. */}}
{{- define "tallyhook.serviceAccountName" -}}
{{- with .values.serviceAccount -}}
{{- if .create -}}{{ .name | default (printf "%s-%s" (include "tallyhook.fullname" $.root) $.component) }}{{- else -}}{{ .name | default "default" }}{{- end -}}
{{- end -}}
{{- end }}
