import { duration, oneOf, secret, url } from './value_types.ts';

/** Webhooks to the owners of exports and to the operator. */
export const webhooks = {
  EXPORTD_WEBHOOK_TIMEOUT: duration('10s', { min: '100ms' }).describe('Timeout of a request to a webhook.'),
  EXPORTD_WEBHOOK_RETRY_INITIAL: duration('10s', { min: '10ms' }).describe(
    'Delay before a delivery is retried. It doubles with each retry.',
  ),
  EXPORTD_WEBHOOK_RETRY_BUDGET: duration('24h').describe('How long a delivery is retried.'),
  EXPORTD_OPERATOR_WEBHOOK_URL: url()
    .optional()
    .describe("Webhook that is notified once of each operator's fault: what delays runs, and what to fix.")
    .meta({ when: 'Set it unless you alert on metrics.' }),
  EXPORTD_OPERATOR_WEBHOOK_FORMAT: oneOf(['json', 'slack', 'pagerduty'], 'json').describe(
    "Form of the operator's webhook. `slack` fits an incoming webhook of Slack, `pagerduty` the address `https://events.pagerduty.com/v2/enqueue?routing_key=…`.",
  ),
  EXPORTD_OPERATOR_WEBHOOK_SECRET: secret()
    .regex(/^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/, 'invalid: write `whsec_` and 24 to 64 bytes in base64')
    .optional()
    .describe("Signs the operator's webhook: `whsec_` and 24 to 64 bytes in base64."),
};
