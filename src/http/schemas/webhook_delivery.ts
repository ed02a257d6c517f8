import { z } from 'zod';
import { deliveryStatuses } from '../../notifications/delivery_log.ts';
import { notificationTypes } from '../../notifications/notification.ts';
import { limitParameter, offsetParameter, pathId, repeatable, responseTimestampSchema } from './common.ts';

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
