import { z } from 'zod';
import { notificationTypes } from '../../notifications/notification.ts';
import { isWebhookSecret } from '../../notifications/signature.ts';
import { pathId, readOnly, responseTimestamp } from './common.ts';

const events = z
  .array(z.enum(notificationTypes))
  .min(1, 'Name at least one event, or leave `events` out for all.')
  .transform((given) => notificationTypes.filter((type) => given.includes(type)));

const batchExport = z.guid('Must be the id of a batch export.').toLowerCase();

/** Longer addresses are refused by many servers. */
const maxUrlLength = 2_000;
const url = z.string().max(maxUrlLength, `At most ${maxUrlLength} characters.`);

const secret = z
  .string()
  .refine(isWebhookSecret, 'Must be `whsec_` followed by 24 to 64 random bytes in base64.')
  .describe('What messages are signed with; never answered but when the webhook is created.');

/** A webhook as it is answered. */
export const webhookSchema = z
  .object({
    id: z.string(),
    url: z.string(),
    events: z.array(z.enum(notificationTypes)),
    batch_export: z.string().nullable().describe('The one export that it is told of; null for all.'),
    enabled: z.boolean(),
    created_at: responseTimestamp,
    last_delivery: z
      .object({
        at: responseTimestamp,
        status: z.number().int().nullable().describe('The status code that the receiver answered.'),
        detail: z.string(),
      })
      .nullable()
      .describe('The latest attempt to tell it something.'),
  })
  .meta({ id: 'Webhook' });
export type WebhookResponse = z.infer<typeof webhookSchema>;

export const createdWebhookSchema = webhookSchema
  .extend({ secret: z.string().describe('Shown this once: keep it.') })
  .meta({ id: 'CreatedWebhook' });

const readOnlyFields = { id: readOnly, created_at: readOnly, last_delivery: readOnly };

export const createWebhookBody = z
  .strictObject({
    url,
    events: events.nullish(),
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
    batch_export: batchExport.nullish(),
    enabled: z.boolean().nullish(),
    secret: secret.optional(),
    ...readOnlyFields,
  })
  .meta({ id: 'WebhookUpdate' });

/** What became of the test of a webhook. */
export const webhookTestSchema = z
  .object({
    delivered: z.boolean(),
    status: z.number().int().nullable().describe('The status code that the receiver answered.'),
    detail: z.string(),
  })
  .meta({ id: 'WebhookTest' });

export const webhookPath = z.object({ project_id: z.string(), id: pathId });
