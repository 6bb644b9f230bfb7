{{/* Refuses what would start and be wrong, in words that say what to do. */}}
{{- define "tallyhook.checks" -}}
{{- include "tallyhook.checks.installation" . -}}
{{- include "tallyhook.checks.counts" . -}}
{{- include "tallyhook.checks.kafka" . -}}
{{- include "tallyhook.checks.database" . -}}
{{- include "tallyhook.checks.door" . -}}
{{- include "tallyhook.checks.stops" . -}}
{{- include "tallyhook.checks.extras" . -}}
{{- end }}

{{- define "tallyhook.checks.installation" -}}
{{- with .Values.installation -}}
{{- if and .livemode (hasSuffix ".test" .topicPrefix) -}}
{{- fail (printf "installation.topicPrefix is %s, where a door puts test events, but installation.livemode is true: every event would be set aside. Set installation.livemode to false, or use another prefix." .topicPrefix) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.streams.persistence.enabled (ne .Values.streams.store "rocksdb") -}}
{{- fail "streams.persistence.enabled needs streams.store rocksdb: the memory store writes nothing." -}}
{{- end -}}
{{- end }}

{{/* No more pods than partitions, whoever decides how many. */}}
{{- define "tallyhook.checks.counts" -}}
{{- $partitions := int .Values.installation.partitions -}}
{{- $counts := dict "relay.shards" (list .Values.relay.shards "a shard without a partition would have nothing to send" "shards") -}}
{{- range $name, $values := dict "sink" .Values.sink "streams" .Values.streams -}}
{{- $idle := "a pod without a partition would stand idle" -}}
{{- if $values.keda.enabled -}}
{{- $_ := set $counts (printf "%s.keda.maxReplicas" $name) (list $values.keda.maxReplicas $idle "replicas") -}}
{{- if gt (int $values.keda.minReplicas) (int $values.keda.maxReplicas) -}}
{{- fail (printf "%s.keda.minReplicas is %d, but %s.keda.maxReplicas is %d." $name (int $values.keda.minReplicas) $name (int $values.keda.maxReplicas)) -}}
{{- end -}}
{{- else -}}
{{- $_ := set $counts (printf "%s.replicas" $name) (list $values.replicas $idle "replicas") -}}
{{- end -}}
{{- end -}}
{{- range $name, $count := $counts -}}
{{- if gt (int (index $count 0)) $partitions -}}
{{- fail (printf "%s is %d, but installation.partitions is %d: %s. Use at most %d %s." $name (int (index $count 0)) $partitions (index $count 1) $partitions (index $count 2)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.ingress.autoscaling -}}
{{- if and .enabled (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail (printf "ingress.autoscaling.minReplicas is %d, but ingress.autoscaling.maxReplicas is %d." (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tallyhook.checks.kafka" -}}
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
{{- end }}

{{- define "tallyhook.checks.database" -}}
{{- with .Values.database -}}
{{- if eq (empty .url) (empty .urlKey) -}}
{{- fail "database: give either url, or existingSecret with urlKey, and not both." -}}
{{- end -}}
{{- if and .urlKey (not .existingSecret) -}}
{{- fail "database.urlKey is set without database.existingSecret: which secret holds it?" -}}
{{- end -}}
{{- if and .url (regexMatch "//[^/@]*:[^/@]+@" .url) -}}
{{- fail "database.url holds a password, which everybody who may read the release could see: put it into database.existingSecret." -}}
{{- end -}}
{{- if and (hasPrefix "verify-" .tls.mode) (not .tls.existingSecret) -}}
{{- fail (printf "database.tls.mode is %s, but database.tls.existingSecret is empty: there is no certificate authority to verify with." .tls.mode) -}}
{{- end -}}
{{- if ne (empty .tls.certificateKey) (empty .tls.privateKeyKey) -}}
{{- fail "database.tls.certificateKey and database.tls.privateKeyKey belong together: give both or neither." -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tallyhook.checks.door" -}}
{{- with .Values.ingress -}}
{{- if and .enabled (not (or .publicKeys.existingSecret .endpoints.existingSecret)) -}}
{{- fail "ingress.publicKeys.existingSecret and ingress.endpoints.existingSecret are empty: without the gateway's public keys no webhook can be verified." -}}
{{- end -}}
{{- if gt (mulf .announceSeconds 2) (float64 .shutdownSeconds) -}}
{{- fail (printf "ingress.announceSeconds is %v, but only half of ingress.shutdownSeconds (%v) may pass before the port closes." .announceSeconds .shutdownSeconds) -}}
{{- end -}}
{{- if and .kubernetesIngress.enabled (not .kubernetesIngress.hosts) -}}
{{- fail "ingress.kubernetesIngress.enabled needs ingress.kubernetesIngress.hosts: under which name do webhooks come?" -}}
{{- end -}}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) -}}
{{- fail "ingress.httpRoute.enabled needs ingress.httpRoute.parentRefs: which gateway is to lead here?" -}}
{{- end -}}
{{- range $name, $route := dict "kubernetesIngress" .kubernetesIngress "httpRoute" .httpRoute -}}
{{- if and $route.enabled (not $.Values.ingress.enabled) -}}
{{- fail (printf "ingress.%s.enabled is true, but ingress.enabled is false: it would lead nowhere." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What a process may take to stop before it ends itself, in seconds: constants of the program. */}}
{{- define "tallyhook.stopSeconds" -}}
{{- get (dict "streams" "60" "sink" "25" "relay" "25") . -}}
{{- end }}

{{/* The grace period that follows from it, with room for the process to end. */}}
{{- define "tallyhook.graceSeconds" -}}
{{- add (include "tallyhook.stopSeconds" .) 5 -}}
{{- end }}

{{- define "tallyhook.checks.stops" -}}
{{- range $name, $values := dict "streams" .Values.streams "sink" .Values.sink "relay" .Values.relay -}}
{{- $least := include "tallyhook.graceSeconds" $name | int -}}
{{- if and $values.terminationGraceSeconds (lt (int $values.terminationGraceSeconds) $least) -}}
{{- fail (printf "%s.terminationGraceSeconds is %d, but a clean stop may take %s s: the pod would be killed in the middle of it. Use at least %d, or leave it empty." $name (int $values.terminationGraceSeconds) (include "tallyhook.stopSeconds" $name) $least) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "tallyhook.checks.extras" -}}
{{- if and .Values.strimzi.enabled (not .Values.strimzi.cluster) -}}
{{- fail "strimzi.enabled needs strimzi.cluster: the name of the Kafka resource whose operator is to make the topics." -}}
{{- end -}}
{{- with .Values.helmTest -}}
{{- if .enabled -}}
{{- if not .signingKey.existingSecret -}}
{{- fail "helmTest.signingKey.existingSecret is empty: `helm test` signs with a key of its own (tallyhook keys generate), whose public half the door knows as test_only." -}}
{{- end -}}
{{- if and $.Values.installation.livemode (not .schema) -}}
{{- fail "helmTest.schema is empty, but this installation is for live events: the verdict of a test event comes in the schema of the installation for test events." -}}
{{- end -}}
{{- if and (not .url) (not $.Values.ingress.enabled) -}}
{{- fail "helmTest.url is empty, but ingress.enabled is false: at which door is the test to post?" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
