import messages from './message_examples.json' with { type: 'json' };
import { webhookMessageSchema } from './schema.ts';

const header = (name: string, description: string, example: string) => ({
  name,
  in: 'header' as const,
  required: true,
  description,
  schema: { type: 'string' as const },
  example,
});

/** What exportd sends to the webhooks of users, as the section `webhooks` of the OpenAPI document. */
export const outgoingMessages = {
  notification: {
    post: {
      operationId: 'receiveMessage',
      tags: ['Webhooks'],
      summary: 'Message to a webhook',
      description:
        'Signed as [Standard Webhooks](https://www.standardwebhooks.com) defines. Sent at least once, and for an interval in ' +
        'the order of its generations. Webhooks of the format `slack` receive a message for Slack instead.',
      security: [],
      parameters: [
        header(
          'webhook-id',
          'The same in every attempt and resend of a message.',
          messages.published_interval.id,
        ),
        header('webhook-timestamp', 'The Unix time of the attempt in seconds.', '1793530805'),
        header(
          'webhook-signature',
          '`v1,` and the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` in base64.',
          'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
        ),
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': {
            // A schema with an id is a component of the document.
            schema: { $ref: `#/components/schemas/${webhookMessageSchema.meta()?.id ?? ''}` },
            examples: {
              published_interval: { summary: 'published interval', value: messages.published_interval },
              failed_run: { summary: 'failed run', value: messages.failed_run },
            },
          },
        },
      },
      responses: {
        '2XX': { description: 'The message is delivered.' },
        '410': { description: 'The message is not sent again, and the webhook is disabled.' },
        default: { description: 'The message is sent again, for a day. Redirects are not followed.' },
      },
    },
  },
};
