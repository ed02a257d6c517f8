import type { z } from 'zod';
import { incidentTypes } from '../../../notifications/notification.ts';
import { ApiError } from '../../api_error.ts';
import type {
  createWebhookBody,
  updateWebhookBody,
  WebhookResponse,
  webhookTestSchema,
} from '../../schemas/webhook.ts';
import type { DeliveryDetailResponse, DeliveryResponse } from '../../schemas/webhook_delivery.ts';
import type { webhookMessageSchema } from '../../schemas/webhook_message.ts';
import { ids, pageWith, type ExampleTable } from './example.ts';
import { completedRun } from './runs.ts';

const webhook = {
  id: ids.webhook,
  url: 'https://example.com/hooks/exportd',
  events: [...incidentTypes],
  format: 'json',
  batch_export: null,
  enabled: true,
  created_at: '2026-11-01T09:15:00.000Z',
  last_delivery: {
    at: '2026-11-01T11:00:05.020Z',
    status: 204,
    detail: 'The receiver responded with 204.',
  },
} satisfies WebhookResponse;

const createForSlack = {
  url: 'https://hooks.slack.com/services/T000/B000/XXXX',
  format: 'slack',
} satisfies z.input<typeof createWebhookBody>;
const createForPipeline = {
  url: 'https://example.com/load',
  events: ['interval.published'],
  batch_export: ids.batch_export,
} satisfies z.input<typeof createWebhookBody>;
const disable = { enabled: false } satisfies z.input<typeof updateWebhookBody>;

/** A message about a published interval. */
export const publishedMessage = {
  id: ids.message,
  type: 'interval.published',
  timestamp: '2026-11-01T11:00:04.502Z',
  data: {
    project_id: 1,
    batch_export_id: ids.batch_export,
    batch_export_name: 'Clicks',
    backfill_id: null,
    run_id: ids.run,
    status: 'Completed',
    latest_error: null,
    data_interval_start: completedRun.data_interval_start,
    data_interval_end: completedRun.data_interval_end,
    manifest_key: completedRun.manifest_key,
    generation: 1,
    rows: 4_933,
    bytes: 418_204,
    files: 1,
  },
} satisfies z.output<typeof webhookMessageSchema>;

const failed = {
  id: ids.delivery,
  webhook: ids.webhook,
  event: 'interval.published',
  message_id: ids.message,
  batch_export: ids.batch_export,
  batch_export_name: 'Clicks',
  run_id: ids.run,
  data_interval_start: completedRun.data_interval_start,
  data_interval_end: completedRun.data_interval_end,
  generation: 1,
  status: 'failed',
  detail: 'The receiver responded with 500.',
  attempts: 2,
  next_attempt_at: null,
  resend_of: null,
  created_at: '2026-11-01T11:00:04.502Z',
  ended_at: '2026-11-02T11:00:04.871Z',
} satisfies DeliveryResponse;

const attempt = { duration_ms: 212, status: 500, detail: 'The receiver responded with 500.' };
const detail = {
  ...failed,
  payload: publishedMessage,
  attempt_log: [
    { number: 1, at: '2026-11-01T11:00:05.020Z', ...attempt },
    { number: 2, at: '2026-11-02T11:00:04.871Z', ...attempt },
  ],
} satisfies DeliveryDetailResponse;
const pending = {
  ...failed,
  payload: publishedMessage,
  id: 'f4e3d2c1-b0a9-4887-9665-544332211000',
  status: 'pending',
  detail: null,
  attempts: 0,
  next_attempt_at: '2026-11-02T14:30:00.000Z',
  resend_of: ids.delivery,
  created_at: '2026-11-02T14:30:00.000Z',
  ended_at: null,
  attempt_log: [],
} satisfies DeliveryDetailResponse;

const tested = {
  delivered: true,
  status: 204,
  detail: 'The receiver responded with 204.',
} satisfies z.output<typeof webhookTestSchema>;

export const webhookExamples: ExampleTable = {
  'GET /webhooks': { responses: { 200: pageWith(webhook) } },
  'POST /webhooks': {
    body: {
      incidents: { url: webhook.url },
      incidents_to_slack: createForSlack,
      published_intervals: createForPipeline,
    },
    responses: {
      201: {
        created: {
          ...webhook,
          last_delivery: null,
          secret: 'whsec_your secret, returned only once',
        },
      },
    },
  },
  'GET /webhooks/{id}': { responses: { 200: { webhook } } },
  'PATCH /webhooks/{id}': { body: { disable }, responses: { 200: { disabled: { ...webhook, ...disable } } } },
  'DELETE /webhooks/{id}': {},
  'POST /webhooks/{id}/test': {
    body: { test: {} },
    responses: {
      200: {
        delivered: tested,
        not_delivered: {
          delivered: false,
          status: null,
          detail: 'The receiver could not be reached (ECONNREFUSED).',
        },
      },
    },
  },
  'GET /webhooks/{id}/deliveries': { responses: { 200: pageWith(failed) } },
  'GET /webhooks/{id}/deliveries/{delivery_id}': { responses: { 200: { failed: detail } } },
  'POST /webhooks/{id}/deliveries/{delivery_id}/resend': {
    body: { resend: {} },
    responses: { 200: { pending_before: { ...pending, resend_of: null } }, 201: { resent: pending } },
    errors: [new ApiError(409, 'conflict', 'The webhook is disabled. Enable it, then resend.')],
  },
};
