{{/*
The pod of a job. Takes {root, component, args}. Its settings stand in the manifest itself: hooks run before the
release's config map exists.
*/}}
{{- define "tallyhook.job" -}}
{{- $root := .root -}}
{{- $jobs := $root.Values.jobs -}}
{{- $account := dict "root" $root "component" "jobs" "values" $jobs -}}
{{- $of := merge (dict "database" true "values" $jobs "objectAnnotations" $jobs.annotations
    "serviceAccountName" (include "tallyhook.serviceAccountName" $account)) . -}}
apiVersion: batch/v1
kind: Job
metadata:
  {{- include "tallyhook.metadata" $of | nindent 2 }}
spec:
  backoffLimit: 6
  activeDeadlineSeconds: {{ $jobs.deadlineSeconds }}
  template:
    metadata:
      labels:
        {{- include "tallyhook.podLabels" $of | nindent 8 }}
      {{- with merge (dict) ($jobs.pod.annotations | default dict) $root.Values.pod.annotations }}
      annotations:
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
            {{- with include "tallyhook.extraEnv" $of | trim }}
            {{- . | nindent 12 }}
            {{- end }}
{{- end }}
