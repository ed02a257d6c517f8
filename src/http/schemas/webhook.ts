import { z } from 'zod';
import { notificationTypes, payloadFormats } from '../../notifications/notification.ts';
import { isWebhookSecret } from '../../notifications/send_webhook.ts';
import { pathId, readOnly, responseTimestampSchema } from './common.ts';

const events = z
  .array(z.enum(notificationTypes))
  .min(1, 'List at least one event, or omit `events` to receive all but `interval.published`.')
  .transform((given) => notificationTypes.filter((type) => given.includes(type)))
  .describe('By default all events but `interval.published`.');

const format = z
  .enum(payloadFormats)
  .describe(
    '`json`: id, type, time and data of the event. `slack`: a message for an incoming webhook of Slack.',
  );

const batchExport = z.guid('Must be the UUID of a batch export.').toLowerCase();

/** Many servers reject longer URLs. */
const maxUrlLength = 2_000;
const url = z.string().max(maxUrlLength, `Must have at most ${maxUrlLength} characters.`);

const secret = z
  .string()
  .refine(isWebhookSecret, 'Must be `whsec_` followed by 24 to 64 random bytes in base64.')
  .meta({ pattern: '^whsec_[A-Za-z0-9+/]{32,86}={0,2}$' })
  .describe('The key that signs messages. Returned only when the webhook is created.');

/** A webhook in a response. */
export const webhookSchema = z
  .object({
    id: z.string(),
    url: z.string(),
    events: z.array(z.enum(notificationTypes)),
    format,
    batch_export: z
      .string()
      .nullable()
      .describe('Send only notifications of this batch export; null for all.'),
    enabled: z.boolean(),
    created_at: responseTimestampSchema,
    last_delivery: z
      .object({
        at: responseTimestampSchema,
        status: z.number().int().nullable().describe('The status code of the response; null without one.'),
        detail: z.string(),
      })
      .nullable()
      .describe('The latest delivery attempt.'),
  })
  .meta({ id: 'Webhook' });
export type WebhookResponse = z.infer<typeof webhookSchema>;

export const createdWebhookSchema = webhookSchema
  .extend({ secret: z.string().describe('Returned only once: store it.') })
  .meta({ id: 'CreatedWebhook' });

const readOnlyFields = { id: readOnly, created_at: readOnly, last_delivery: readOnly };

export const createWebhookBody = z
  .strictObject({
    url,
    events: events.nullish(),
    format: format.nullish(),
    batch_export: batchExport.nullish(),
    enabled: z.boolean().nullish(),
    secret: secret.nullish(),
    ...readOnlyFields,
  })
  .meta({ id: 'WebhookCreate' });

export const updateWebhookBody = z
  .strictObject({
    url: url.optional(),
    events: events.nullish(),
    format: format.nullish(),
    batch_export: batchExport.nullish(),
    enabled: z.boolean().nullish(),
    secret: secret.optional(),
    ...readOnlyFields,
  })
  .meta({ id: 'WebhookUpdate' });

/** The result of a webhook test. */
export const webhookTestSchema = z
  .object({
    delivered: z.boolean(),
    status: z.number().int().nullable().describe('The status code of the response; null without one.'),
    detail: z.string(),
  })
  .meta({ id: 'WebhookTest' });

export const webhookPath = z.object({ project_id: z.string(), id: pathId });
