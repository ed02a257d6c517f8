import { z } from 'zod';
import { notificationTypes } from '../../notifications/notification.ts';
import { responseTimestampSchema } from './common.ts';

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
