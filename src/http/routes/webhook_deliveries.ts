import { findWebhook } from '../../notifications/webhooks.ts';
import {
  deliveryStatuses,
  findDelivery,
  listDeliveries,
  type LoggedDelivery,
} from '../../notifications/delivery_log.ts';
import { messageBody, notificationTypes } from '../../notifications/notification.ts';
import { notFound } from '../api_error.ts';
import { offsetPage, projectUrl } from '../paging.ts';
import { resend } from '../resend_delivery.ts';
import { parseChoices, teamOf, type ProjectRoutes, type RouteContext } from '../route_context.ts';
import { emptyBody, errorResponses, pageOf } from '../schemas/common.ts';
import { webhookPath } from '../schemas/webhook.ts';
import {
  deliveriesQuery,
  deliveryDetailSchema,
  deliveryPath,
  deliverySchema,
  type DeliveryDetailResponse,
  type DeliveryResponse,
} from '../schemas/webhook_delivery.ts';

const read = { config: { scope: 'batch_export:read' } } as const;
const write = { config: { scope: 'batch_export:write' } } as const;

function toDeliveryResponse(webhook: string, delivery: LoggedDelivery): DeliveryResponse {
  const { data, notification_id, ...fields } = delivery;
  const { batch_export_id, batch_export_name, run_id, data_interval_start, data_interval_end } = data;
  return {
    ...fields,
    webhook,
    message_id: notification_id,
    batch_export: batch_export_id,
    batch_export_name,
    run_id,
    data_interval_start,
    data_interval_end,
    generation: data.generation,
  };
}

/** @throws ApiError 404 */
async function requireWebhook({ pool }: RouteContext, teamId: number, id: string): Promise<void> {
  if (!(await findWebhook(pool, teamId, id))) throw notFound();
}

/** @throws ApiError 404 */
async function readResponse(
  { pool, settings }: RouteContext,
  webhook: string,
  id: string,
): Promise<DeliveryDetailResponse> {
  const found = await findDelivery(pool, webhook, id);
  if (!found) throw notFound();
  const { format, notification, attempt_log, ...delivery } = found;
  return {
    ...toDeliveryResponse(webhook, delivery),
    payload: JSON.parse(messageBody(format, notification, settings)) as Record<string, unknown>,
    attempt_log: [...attempt_log],
  };
}

/** List and retrieve the deliveries of a webhook, and resend one. */
export const webhookDeliveryRoutes: ProjectRoutes = (app, context) => {
  const { settings, pool } = context;

  app.get(
    '/webhooks/:id/deliveries',
    {
      ...read,
      schema: {
        summary: 'List webhook deliveries',
        description: 'What the webhook received and what it did not, newest first, as long as logs are kept.',
        params: webhookPath,
        querystring: deliveriesQuery,
        response: { 200: pageOf(deliverySchema), ...errorResponses },
      },
    },
    async (request) => {
      const { id } = request.params;
      const { status, event, batch_export, ...window } = request.query;
      const filter = {
        statuses: parseChoices('status', status, deliveryStatuses),
        events: parseChoices('event', event, notificationTypes),
        batch_export,
      };
      await requireWebhook(context, teamOf(request), id);
      const { count, results } = await listDeliveries(pool, id, filter, window);
      const responses = results.map((delivery) => toDeliveryResponse(id, delivery));
      return offsetPage(request, settings, window, { count, results: responses });
    },
  );

  app.get(
    '/webhooks/:id/deliveries/:delivery_id',
    {
      ...read,
      schema: {
        summary: 'Retrieve webhook delivery',
        params: deliveryPath,
        response: { 200: deliveryDetailSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { id, delivery_id } = request.params;
      await requireWebhook(context, teamOf(request), id);
      return readResponse(context, id, delivery_id);
    },
  );

  app.post(
    '/webhooks/:id/deliveries/:delivery_id/resend',
    {
      ...write,
      schema: {
        summary: 'Resend webhook delivery',
        description:
          'Sends the message again, with the same id. Responds 201 with a new delivery, or 200 with the pending one of ' +
          'the same message, which is attempted now. A disabled webhook is 409.',
        params: deliveryPath,
        body: emptyBody,
        response: { 200: deliveryDetailSchema, 201: deliveryDetailSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { id, delivery_id } = request.params;
      await requireWebhook(context, teamOf(request), id);
      const resent = await resend(context, id, delivery_id);
      if (resent.created) {
        const path = `/webhooks/${id}/deliveries/${resent.delivery_id}/`;
        void reply.code(201).header('location', projectUrl(request, settings, path));
      }
      return reply.send(await readResponse(context, id, resent.delivery_id));
    },
  );
};
