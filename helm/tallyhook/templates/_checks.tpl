{{/* Refuses what would start and be wrong, in words. Every template with pods calls it. */}}
{{- define "tallyhook.checks" -}}
{{- $partitions := int .Values.installation.partitions -}}
{{- if gt (int .Values.sink.replicas) $partitions -}}
{{- fail (printf "sink.replicas is %d, but installation.partitions is %d: a sink pod without a partition would stand idle. Use at most %d replicas." (int .Values.sink.replicas) $partitions $partitions) -}}
{{- end -}}
{{- if gt (int .Values.streams.replicas) $partitions -}}
{{- fail (printf "streams.replicas is %d, but installation.partitions is %d: a worker without a partition would stand idle. Use at most %d replicas." (int .Values.streams.replicas) $partitions $partitions) -}}
{{- end -}}
{{- if gt (int .Values.relay.shards) $partitions -}}
{{- fail (printf "relay.shards is %d, but installation.partitions is %d: a shard without a partition would have nothing to send. Use at most %d shards." (int .Values.relay.shards) $partitions $partitions) -}}
{{- end -}}
{{- if not .Values.kafka.bootstrap -}}
{{- fail "kafka.bootstrap is empty: give host:port of your brokers." -}}
{{- end -}}
{{- $sasl := hasPrefix "SASL_" .Values.kafka.securityProtocol -}}
{{- with .Values.kafka.sasl -}}
{{- if and $sasl (not (and .mechanism .username .existingSecret)) -}}
{{- fail (printf "kafka.securityProtocol is %s: kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.existingSecret are all needed." $.Values.kafka.securityProtocol) -}}
{{- end -}}
{{- if and .mechanism (not $sasl) -}}
{{- fail (printf "kafka.sasl.mechanism is %s, but kafka.securityProtocol is %s: the password would not be used. Use SASL_SSL or SASL_PLAINTEXT." .mechanism $.Values.kafka.securityProtocol) -}}
{{- end -}}
{{- end -}}
{{- with .Values.kafka.tls -}}
{{- if and .existingSecret (not (hasSuffix "SSL" $.Values.kafka.securityProtocol)) -}}
{{- fail (printf "kafka.tls.existingSecret is set, but kafka.securityProtocol is %s: the connection would not be encrypted. Use SSL or SASL_SSL." $.Values.kafka.securityProtocol) -}}
{{- end -}}
{{- if ne (empty .certificateKey) (empty .privateKeyKey) -}}
{{- fail "kafka.tls.certificateKey and kafka.tls.privateKeyKey belong together: give both or neither." -}}
{{- end -}}
{{- end -}}
{{- with .Values.database -}}
{{- if eq (empty .url) (empty .urlKey) -}}
{{- fail "database: give either url, or existingSecret with urlKey, and not both." -}}
{{- end -}}
{{- if and .urlKey (not .existingSecret) -}}
{{- fail "database.urlKey is set without database.existingSecret: which secret holds it?" -}}
{{- end -}}
{{- end -}}
{{- if not (or .Values.ingress.publicKeys.existingSecret .Values.ingress.endpoints.existingSecret) -}}
{{- fail "ingress.publicKeys.existingSecret and ingress.endpoints.existingSecret are empty: without the gateway's public keys no webhook can be verified." -}}
{{- end -}}
{{- if gt (mulf .Values.ingress.announceSeconds 2) (float64 .Values.ingress.shutdownSeconds) -}}
{{- fail (printf "ingress.announceSeconds is %v, but only half of ingress.shutdownSeconds (%v) may pass before the port closes." .Values.ingress.announceSeconds .Values.ingress.shutdownSeconds) -}}
{{- end -}}
{{- if and .Values.streams.persistence.enabled (ne .Values.streams.store "rocksdb") -}}
{{- fail "streams.persistence.enabled needs streams.store rocksdb: the memory store writes nothing." -}}
{{- end -}}
{{- end }}
