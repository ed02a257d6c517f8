import * as z from 'zod';
import { duration, flag, optionalFlag, secret, text, url } from './value_types.ts';

/** What Temporal accepts as the name of a Worker Deployment: it joins it to the Build ID with a dot or a colon. */
const deploymentNames = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;
const buildIds = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/**
 * How exportd reaches Temporal, and what it needs there. The `TEMPORAL_` settings are those of Temporal's own tools; a
 * profile of `temporal.toml` can have them too.
 */
export const temporal = {
  TEMPORAL_ADDRESS: text('127.0.0.1:7233')
    .describe('Host and port of the Temporal server.')
    .meta({ when: 'Temporal runs on another machine.' }),
  TEMPORAL_NAMESPACE: text('default').describe('Temporal namespace.'),
  TEMPORAL_CONFIG_FILE: z
    .string()
    .optional()
    .describe(
      "File with profiles of these settings. Default: `temporalio/temporal.toml` in the user's configuration folder.",
    ),
  TEMPORAL_PROFILE: z
    .string()
    .optional()
    .describe('Profile in that file. The environment overrides its settings. Default: `default`.'),
  TEMPORAL_API_KEY: secret().optional().describe('API key. It is sent over TLS unless `TEMPORAL_TLS=false`.'),
  TEMPORAL_TLS: optionalFlag().describe(
    'Whether to use TLS. Default: yes with an API key or another setting of TLS.',
  ),
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: z
    .string()
    .optional()
    .describe(
      "PEM file with the CA that issued the server's certificate. Default: the CAs of the operating system.",
    ),
  TEMPORAL_TLS_SERVER_CA_CERT_DATA: z.string().optional().describe('The same as text, instead of a path.'),
  TEMPORAL_TLS_CLIENT_CERT_PATH: z
    .string()
    .optional()
    .describe("PEM file with exportd's certificate, for mTLS. It needs a key."),
  TEMPORAL_TLS_CLIENT_CERT_DATA: z.string().optional().describe('The same as text, instead of a path.'),
  TEMPORAL_TLS_CLIENT_KEY_PATH: z
    .string()
    .optional()
    .describe('PEM file with the private key of that certificate.'),
  TEMPORAL_TLS_CLIENT_KEY_DATA: secret().optional().describe('The same as text, instead of a path.'),
  TEMPORAL_TLS_SERVER_NAME: z
    .string()
    .optional()
    .describe("Name in the server's certificate, if it is not the host of the address."),
  TEMPORAL_UI_URL: url()
    .optional()
    .describe('Base URL of the Temporal UI, for links in responses. Unset: no links.'),
  EXPORTD_TASK_QUEUE_PREFIX: text('exportd').describe(
    'Prefix of the task queues and, unless it is the default, of workflow ids, for several deployments in one namespace.',
  ),
  EXPORTD_DEPLOYMENT_NAME: z
    .string()
    .regex(deploymentNames, 'not a name of letters, digits, _ and -, such as exportd')
    .optional()
    .describe(
      "Name of the Worker Deployment, for workers of two versions side by side (Temporal's Worker Versioning). Unset: unversioned.",
    ),
  EXPORTD_BUILD_ID: z
    .string()
    .regex(buildIds, 'not an id of letters, digits, _, - and dots, such as 0.3.0')
    .optional()
    .describe(
      'Build ID of the workers in that deployment, different for each build. Default: the version of exportd.',
    ),
  EXPORTD_MANUAL_SIGNALS: flag(false).describe(
    'Whether schedules accept pause, unpause, backfill, retry and delete as signals from the Temporal UI or CLI, which need no API key.',
  ),
  EXPORTD_TEMPORAL_REQUEST_TIMEOUT: duration('5s', { min: '100ms' }).describe(
    'Timeout of a request to Temporal, including its retries.',
  ),
  EXPORTD_REGISTER_SEARCH_ATTRIBUTES: flag(true).describe(
    'Whether workers register missing search attributes. If not, run `exportd temporal setup` first.',
  ),
  EXPORTD_PAYLOAD_CODEC_MODULE: z
    .string()
    .optional()
    .describe(
      "Module (path or package) that exports `payloadCodecs`, an array of Temporal's `PayloadCodec`, to encrypt histories. All processes need it.",
    ),
};
