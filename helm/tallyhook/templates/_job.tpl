{{/*
A job that runs before an installation or upgrade. Takes {root, component, args, weight}. Its settings stand in the
manifest itself: hooks run before the release's config map exists.
*/}}
{{- define "tallyhook.job" -}}
{{- $root := .root -}}
{{- $of := merge (dict "database" true "resources" $root.Values.jobs.resources) . -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "tallyhook.fullname" $root }}-{{ .component }}
  labels:
    {{- include "tallyhook.labels" $of | nindent 4 }}
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-weight: {{ .weight | quote }}
    # A failed job stays, so that its log can be read.
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  backoffLimit: 6
  activeDeadlineSeconds: {{ $root.Values.jobs.deadlineSeconds }}
  template:
    metadata:
      labels:
        {{- include "tallyhook.selector" $of | nindent 8 }}
        {{- with $root.Values.pod.labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      restartPolicy: Never
      {{- include "tallyhook.podSpec" $of | nindent 6 }}
      containers:
        - name: {{ .component }}
          {{- include "tallyhook.container" $of | nindent 10 }}
          env:
            {{- range $name, $value := fromYaml (include "tallyhook.settings" $root) }}
            - {name: {{ $name }}, value: {{ $value | quote }}}
            {{- end }}
            {{- include "tallyhook.databaseEnv" $root | trim | nindent 12 }}
{{- end }}
