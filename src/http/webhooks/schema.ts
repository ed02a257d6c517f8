import * as z from 'zod';
import { deliveryStatuses } from '../../notifications/delivery_log.ts';
import { incidentCauses, incidentEnds, notificationTypes } from '../../notifications/notification.ts';
import { payloadFormats } from '../../notifications/message_body.ts';
import { isWebhookSecret } from '../../notifications/send_webhook.ts';
import { conditionSchema } from '../batch_exports/schema.ts';
import {
  limitParameter,
  offsetParameter,
  pathId,
  readOnly,
  repeatable,
  responseTimestampSchema,
} from '../schemas.ts';

const events = z
  .array(z.enum(notificationTypes))
  .min(1, 'List at least one event, or omit `events` to receive all but `interval.published`.')
  .transform((given) => notificationTypes.filter((type) => given.includes(type)))
  .describe('By default all events but `interval.published`.');

const format = z
  .enum(payloadFormats)
  .describe(
    '`json`: id, type, time and data of the event. `slack`: a message for an incoming webhook of Slack. `pagerduty`: an event for `https://events.pagerduty.com/v2/enqueue?routing_key=…`, whose `dedup_key` is the id of the incident.',
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
    url: z
      .string()
      .describe(
        'With `batch_export:write` the whole URL, where the server can decrypt it; else its origin and `…`, since its path is often a credential.',
      ),
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

const status = z.enum(deliveryStatuses).meta({
  id: 'WebhookDeliveryStatus',
  description: [
    '* `pending` - is attempted at `next_attempt_at`',
    '* `delivered` - the receiver responded with 2xx',
    '* `failed` - no more attempts follow',
    '* `dropped` - was not attempted to the end; `detail` says why',
  ].join('\n'),
});

const httpStatus = z.number().int().nullable().describe('The status code of the response; null without one.');

/** A delivery of a notification to a webhook in a response. */
export const deliverySchema = z
  .object({
    id: z.string(),
    webhook: z.string(),
    event: z.enum(notificationTypes),
    message_id: z
      .string()
      .describe(
        'The header `webhook-id`, which is the same in every attempt and resend of the notification.',
      ),
    batch_export: z.string().nullable(),
    batch_export_name: z.string().nullable().describe('The name at the time of the event.'),
    run_id: z.string().nullable(),
    data_interval_start: responseTimestampSchema.nullable(),
    data_interval_end: responseTimestampSchema.nullable(),
    generation: z.number().int().nullable().describe('Of `interval.published`; null for other events.'),
    status,
    detail: z
      .string()
      .nullable()
      .describe('The result of the latest attempt, or why it was dropped; null before the first attempt.'),
    attempts: z.number().int(),
    next_attempt_at: responseTimestampSchema.nullable().describe('Null unless the delivery is pending.'),
    resend_of: z.string().nullable().describe('The delivery that this one repeats; null for the first one.'),
    created_at: responseTimestampSchema,
    ended_at: responseTimestampSchema.nullable().describe('Null while the delivery is pending.'),
  })
  .meta({ id: 'WebhookDelivery' });
export type DeliveryResponse = z.infer<typeof deliverySchema>;

/** A single delivery, with its message and its attempts. */
export const deliveryDetailSchema = deliverySchema
  .extend({
    payload: z
      .record(z.string(), z.unknown())
      .describe('The body of the message, in the present format of the webhook.'),
    attempt_log: z
      .array(
        z.object({
          number: z.number().int(),
          at: responseTimestampSchema.describe('When the attempt ended.'),
          duration_ms: z.number().int(),
          status: httpStatus,
          detail: z.string(),
        }),
      )
      .describe('Every attempt, oldest first.'),
  })
  .meta({ id: 'WebhookDeliveryDetail' });
export type DeliveryDetailResponse = z.infer<typeof deliveryDetailSchema>;

export const deliveriesQuery = z.strictObject({
  limit: limitParameter,
  offset: offsetParameter,
  status: repeatable.describe(`One or more of ${deliveryStatuses.join(', ')}, repeated or comma-separated.`),
  event: repeatable.describe(`One or more of ${notificationTypes.join(', ')}, repeated or comma-separated.`),
  batch_export: z
    .guid('Must be the UUID of a batch export.')
    .toLowerCase()
    .optional()
    .describe('Only deliveries about this batch export.'),
});

export const deliveryPath = z.object({ project_id: z.string(), id: pathId, delivery_id: pathId });

const count = z.number().int().nullable();

/** The body of a message to a webhook of the format `json`. */
export const webhookMessageSchema = z
  .object({
    id: z.string().describe('The header `webhook-id`: the same in every attempt and resend.'),
    type: z.enum([...notificationTypes, 'test']),
    timestamp: responseTimestampSchema.describe('The time of the event.'),
    data: z
      .object({
        project_id: z.number().int(),
        batch_export_id: z.string().nullable(),
        batch_export_name: z.string().nullable(),
        backfill_id: z
          .string()
          .nullable()
          .describe('The backfill of the run; null for runs of the schedule.'),
        run_id: z.string().nullable(),
        status: z.string().nullable().describe('The status of the run, or `Paused`.'),
        latest_error: z.string().nullable(),
        data_interval_start: responseTimestampSchema.nullable(),
        data_interval_end: responseTimestampSchema.nullable(),
        backfill: z
          .object({
            intervals: z.number().int(),
            exported: z.number().int(),
            unchanged: z.number().int().describe('Nothing was published of them: the bucket had their rows.'),
            failed: z.number().int().describe('Failed, cancelled, or waiting for another automatic retry.'),
            rows: z.number().int(),
          })
          .nullable()
          .describe('How the intervals of the backfill ended. Null unless it is `backfill.completed`.'),
        incident: z
          .object({
            id: z.string().describe('The same in all messages about it, from the first to the last.'),
            cause: z.enum(incidentCauses),
            subject: z
              .string()
              .nullable()
              .describe(
                'What is out, which may concern several exports; null for the trouble of one export.',
              ),
            exports: z.number().int().describe('Exports of the project that it concerns.'),
            intervals: z.number().int().describe('Intervals that wait, or waited.'),
            opened_at: responseTimestampSchema,
            closed_at: responseTimestampSchema.nullable().describe('Null until it is over.'),
            closed_by: z
              .enum(incidentEnds)
              .nullable()
              .describe('`disuse`: it lasts, but no export waits for it any more, such as after a pause.'),
          })
          .nullable()
          .describe('What the message opens or ends; null if it does neither.'),
        condition: conditionSchema
          .pick({ severity: true, cause: true, summary: true, since: true, owner: true })
          .nullable()
          .describe(
            'Of the export, when the message was first sent. Null in `interval.published` and in a test.',
          ),
        manifest_key: z
          .string()
          .nullable()
          .describe(
            'The manifest that was published. This and the following fields are null in other messages.',
          ),
        generation: count.describe(
          'Counts how often the interval was published, from 1. The highest one wins.',
        ),
        rows: count.describe('Rows of the files that the manifest names.'),
        bytes: count,
        files: count,
      })
      .describe('All fields are null in a test, except `project_id`.'),
  })
  .meta({ id: 'WebhookMessage' });
