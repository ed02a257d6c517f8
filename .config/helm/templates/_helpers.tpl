{{/* Names, labels and the parts that all pods share. */}}

{{- define "exportd.name" -}}
{{- if contains "exportd" .Release.Name }}{{ .Release.Name | trunc 50 }}{{ else }}{{ .Release.Name | trunc 42 }}-exportd{{ end }}
{{- end }}

{{- define "exportd.selector" -}}
app.kubernetes.io/name: exportd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "exportd.labels" -}}
{{ include "exportd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "exportd.podSpec" -}}
automountServiceAccountToken: false
# A service with the name exportd would set EXPORTD_PORT and other variables that are no settings.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
volumes:
  - name: tmp
    emptyDir: {}
  {{- range .Values.mounts }}
  - {{ omit . "mountPath" | toYaml | nindent 4 | trim }}
  {{- end }}
{{- end }}

{{- define "exportd.container" -}}
{{- with .Values.image.digest }}
image: {{ $.Values.image.repository }}@{{ . }}
{{- else }}
image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- range .Values.mounts }}
  - name: {{ .name }}
    mountPath: {{ .mountPath }}
    readOnly: true
  {{- end }}
{{- end }}

{{/* The secrets of a container: the shared ones and, given its name, those of servers or workers. */}}
{{- define "exportd.secrets" -}}
- secretRef:
    name: {{ .root.Values.secrets.shared }}
{{- with .keys }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- end }}

{{- define "exportd.env" -}}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "exportd.probes" -}}
# Starting includes waiting for Temporal, which a restart would not shorten: only a process that hangs is restarted.
livenessProbe:
  httpGet: { path: /livez, port: monitoring }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
startupProbe:
  httpGet: { path: /livez, port: monitoring }
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
{{- end }}
