{{/* A value as the program reads it. Helm takes whole numbers for floats and would write 8388608 as 8.388608e+06. */}}
{{- define "tallyhook.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}{{ printf "%.0f" . }}{{- else -}}{{ . }}{{- end -}}
{{- end }}

{{/* The settings that all processes share, as a map: the config map's data, and the jobs' environment. */}}
{{- define "tallyhook.settings" -}}
TALLYHOOK_TOPIC_PREFIX: {{ .Values.installation.topicPrefix | quote }}
TALLYHOOK_SCHEMA: {{ .Values.installation.schema | quote }}
TALLYHOOK_PARTITIONS: {{ include "tallyhook.text" .Values.installation.partitions | quote }}
TALLYHOOK_LIVEMODE: {{ .Values.installation.livemode | quote }}
TALLYHOOK_DURABILITY: {{ .Values.installation.durability | quote }}
TALLYHOOK_PROFILE: {{ .Values.installation.profile | quote }}
TALLYHOOK_LOG_LEVEL: {{ .Values.logs.level | quote }}
TALLYHOOK_LOG_FORMAT: {{ .Values.logs.format | quote }}
TALLYHOOK_HEALTH_HOST: "0.0.0.0"
TALLYHOOK_KAFKA_BOOTSTRAP: {{ .Values.kafka.bootstrap | quote }}
TALLYHOOK_KAFKA_SECURITY_PROTOCOL: {{ .Values.kafka.securityProtocol | quote }}
{{- with .Values.kafka.sasl }}
{{- if .mechanism }}
TALLYHOOK_KAFKA_SASL_MECHANISM: {{ .mechanism | quote }}
TALLYHOOK_KAFKA_SASL_USERNAME: {{ .username | quote }}
TALLYHOOK_KAFKA_SASL_PASSWORD_FILE: /etc/tallyhook/kafka-sasl/password
{{- end }}
{{- end }}
{{- with .Values.kafka.tls }}
{{- if .existingSecret }}
TALLYHOOK_KAFKA_SSL_CA_LOCATION: /etc/tallyhook/kafka-tls/ca.crt
{{- if .certificateKey }}
TALLYHOOK_KAFKA_SSL_CERTIFICATE_LOCATION: /etc/tallyhook/kafka-tls/tls.crt
TALLYHOOK_KAFKA_SSL_KEY_LOCATION: /etc/tallyhook/kafka-tls/tls.key
{{- end }}
{{- if .privateKeyPasswordKey }}
TALLYHOOK_KAFKA_SSL_KEY_PASSWORD_FILE: /etc/tallyhook/kafka-tls/key-password
{{- end }}
{{- end }}
{{- end }}
TALLYHOOK_INGRESS_HOST: "0.0.0.0"
TALLYHOOK_INGRESS_PORT: "8080"
TALLYHOOK_INGRESS_SHUTDOWN_SECONDS: {{ include "tallyhook.text" .Values.ingress.shutdownSeconds | quote }}
TALLYHOOK_INGRESS_ANNOUNCE_SECONDS: {{ include "tallyhook.text" .Values.ingress.announceSeconds | quote }}
{{- with .Values.ingress.merchantId }}
TALLYHOOK_INGRESS_MERCHANT_ID: {{ . | quote }}
{{- end }}
TALLYHOOK_STREAM_HEALTH_PORT: "9101"
TALLYHOOK_STREAM_STORE: {{ .Values.streams.store | quote }}
TALLYHOOK_STREAM_DATA_DIR: /var/lib/tallyhook/streams
TALLYHOOK_STREAM_REPLICATION: {{ ternary "3" "1" (eq .Values.installation.durability "replicated") | quote }}
TALLYHOOK_SINK_HEALTH_PORT: "9102"
TALLYHOOK_RELAY_HEALTH_PORT: "9103"
TALLYHOOK_RELAY_SHARDS: {{ include "tallyhook.text" .Values.relay.shards | quote }}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ include "tallyhook.text" $value | quote }}
{{- end }}
{{- end }}

{{/* The files of the door's keys: only for the door, since `tallyhook doctor` in another pod would miss them. */}}
{{- define "tallyhook.keysEnv" -}}
{{- with .Values.ingress }}
{{- if .publicKeys.existingSecret }}
- {name: TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE, value: /etc/tallyhook/public-keys/public-keys}
{{- end }}
{{- if .endpoints.existingSecret }}
- {name: TALLYHOOK_INGRESS_ENDPOINTS_FILE, value: {{ printf "/etc/tallyhook/endpoints/%s" .endpoints.key | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{/* The database's variables: only for those who speak to it. */}}
{{- define "tallyhook.databaseEnv" -}}
{{- with .Values.database }}
{{- if .urlKey }}
- {name: TALLYHOOK_DATABASE_URL_FILE, value: /etc/tallyhook/database/url}
{{- else }}
- {name: TALLYHOOK_DATABASE_URL, value: {{ .url | quote }}}
{{- end }}
{{- if and .existingSecret .passwordKey }}
- {name: TALLYHOOK_DATABASE_PASSWORD_FILE, value: /etc/tallyhook/database/password}
{{- end }}
# libpq's own variables: what the URI says wins over them.
{{- with .tls.mode }}
- {name: PGSSLMODE, value: {{ . | quote }}}
{{- end }}
{{- if .tls.existingSecret }}
- {name: PGSSLROOTCERT, value: /etc/tallyhook/database-tls/ca.crt}
{{- if .tls.certificateKey }}
- {name: PGSSLCERT, value: /etc/tallyhook/database-tls/tls.crt}
- {name: PGSSLKEY, value: /etc/tallyhook/database-tls/tls.key}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
