import type { FastifyRequest } from 'fastify';
import type * as z from 'zod';
import type { Settings } from '../../config/settings.ts';
import { fieldChanges, secretChange } from '../../journal/audit.ts';
import { outgoingUrlProblem } from '../../network/outgoing_url.ts';
import {
  deliveryStatuses,
  findDelivery,
  listDeliveries,
  type LoggedDelivery,
} from '../../notifications/delivery_log.ts';
import { incidentTypes, notificationTypes } from '../../notifications/notification.ts';
import { messageBody } from '../../notifications/message_body.ts';
import { type Attempt, createWebhookSecret } from '../../notifications/send_webhook.ts';
import { webhookTestJob } from '../../notifications/webhook_test_job.ts';
import {
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  maxWebhooks,
  openWebhookUrl,
  updateWebhook,
  type Webhook,
  type WebhookFields,
} from '../../notifications/webhooks.ts';
import { ApiError, invalid, notFound } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { offsetPage } from '../paging.ts';
import { answerWithJob, type JobOperation, testFailures } from '../jobs/answer_job.ts';
import { jobSchema } from '../jobs/schema.ts';
import { disconnectSignal, parseChoices, readsExports, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { emptyBody, errorResponses, listQuery, noContent, pageOf } from '../schemas.ts';
import { resend, type ResendService } from './requested_deliveries.ts';
import {
  createdWebhookSchema,
  createWebhookBody,
  deliveriesQuery,
  type DeliveryDetailResponse,
  deliveryDetailSchema,
  deliveryPath,
  type DeliveryResponse,
  deliverySchema,
  updateWebhookBody,
  webhookPath,
  type WebhookResponse,
  webhookSchema,
  webhookTestSchema,
} from './schema.ts';
import { projectUrl } from '../request_urls.ts';

export const webhookTest: JobOperation<object, Attempt, z.infer<typeof webhookTestSchema>> = {
  kind: webhookTestJob,
  access: writesExports,
  toResponse: (attempt) => attempt,
};

/** What keys that cannot write see of a URL, whose path is often a credential. */
const shownUrl = ({ origin }: Webhook): string => `${origin}/…`;

/** A webhook as the caller may see it: its URL as a whole with `batch_export:write`, where the server can decrypt it. */
function toWebhookResponse(
  { keyRing }: RouteContext,
  request: FastifyRequest,
  { events, origin, sealed_url, ...webhook }: Webhook,
): WebhookResponse {
  const url = callerOf(request).scopes.includes('batch_export:write')
    ? openWebhookUrl(keyRing, webhook.id, sealed_url)
    : undefined;
  return {
    ...webhook,
    url: url ?? shownUrl({ ...webhook, events, origin, sealed_url }),
    events: [...events],
  };
}

/** Why a webhook cannot have this URL, to follow "Invalid url: "; null when it can. */
const urlProblem = (url: string, { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: allowed }: Settings): string | null =>
  outgoingUrlProblem(url, allowed) ??
  (url.endsWith('/…') ? 'it is shortened; send all of it, or omit it' : null) ??
  (url.includes('#') ? 'it must not have a fragment, which is never sent' : null);

/** The integration key of PagerDuty, which each of its messages has, comes with the URL. */
const hasRoutingKey = (url: string): boolean => (new URL(url).searchParams.get('routing_key') ?? '') !== '';

/**
 * @param former the format that the webhook has
 * @throws ApiError 400 that names the invalid field
 */
async function validateFields(
  { pool, settings }: RouteContext,
  teamId: number,
  { url, format, batch_export }: Partial<Pick<WebhookFields, 'url' | 'format' | 'batch_export'>>,
  former: WebhookFields['format'] = 'json',
): Promise<void> {
  const isOfPagerDuty = (format ?? former) === 'pagerduty';
  const problem =
    url === undefined
      ? null
      : (urlProblem(url, settings) ??
        (isOfPagerDuty && !hasRoutingKey(url)
          ? 'of PagerDuty it is https://events.pagerduty.com/v2/enqueue?routing_key= and the key of the integration'
          : null));
  if (url === undefined && isOfPagerDuty && former !== 'pagerduty')
    throw invalid('Send the url of PagerDuty with its routing_key too.', 'url');
  if (problem !== null) throw invalid(`Invalid url: ${problem}.`, 'url');
  if (batch_export === undefined || batch_export === null) return;
  await requireBatchExport(pool, teamId, batch_export).catch((error: unknown) => {
    if (!(error instanceof ApiError)) throw error;
    throw invalid('No batch export in this project has this id.', 'batch_export');
  });
}

/** Create, list, retrieve, update, delete and test webhooks, which are notified about batch exports. */
export const webhookRoutes: ProjectRoutes = (app, context) => {
  const { settings, pool, keyRing } = context;

  app.get(
    '/webhooks',
    {
      ...readsExports,
      schema: {
        summary: 'List webhooks',
        querystring: listQuery,
        response: { 200: pageOf(webhookSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { count, results } = await listWebhooks(pool, teamOf(request), request.query);
      return offsetPage(request, settings, request.query, {
        count,
        results: results.map((webhook) => toWebhookResponse(context, request, webhook)),
      });
    },
  );

  app.post(
    '/webhooks',
    {
      ...writesExports,
      schema: {
        summary: 'Create webhook',
        description: 'Messages are signed with the returned secret, as specified by Standard Webhooks.',
        body: createWebhookBody,
        response: { 201: createdWebhookSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { url, events, format, batch_export, enabled, secret } = request.body;
      const fields: WebhookFields = {
        url,
        events: events ?? incidentTypes,
        format: format ?? 'json',
        batch_export: batch_export ?? null,
        enabled: enabled ?? true,
      };
      await validateFields(context, teamOf(request), fields);
      const signingSecret = secret ?? createWebhookSecret();
      const webhook = await createWebhook(pool, keyRing, teamOf(request), fields, signingSecret);
      if (!webhook) throw invalid(`A project has at most ${maxWebhooks} webhooks.`, null);
      return reply
        .code(201)
        .header('location', projectUrl(request, settings, `/webhooks/${webhook.id}/`))
        .send({ ...toWebhookResponse(context, request, webhook), secret: signingSecret });
    },
  );

  app.get(
    '/webhooks/:id',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve webhook',
        params: webhookPath,
        response: { 200: webhookSchema, ...errorResponses },
      },
    },
    async (request) => {
      const found = await findWebhook(pool, teamOf(request), request.params.id);
      if (!found) throw notFound();
      return toWebhookResponse(context, request, found);
    },
  );

  app.patch(
    '/webhooks/:id',
    {
      ...writesExports,
      schema: {
        summary: 'Update webhook',
        params: webhookPath,
        body: updateWebhookBody,
        response: { 200: webhookSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { events, format, batch_export, enabled, secret } = request.body;
      const found = await findWebhook(pool, teamOf(request), request.params.id);
      if (!found) throw notFound();
      // A response of a reader can be sent back unchanged.
      const url = request.body.url === shownUrl(found) ? undefined : request.body.url;
      const fields: Partial<WebhookFields> = {
        ...(url === undefined ? {} : { url }),
        ...(events === undefined ? {} : { events: events ?? incidentTypes }),
        ...(format === undefined ? {} : { format: format ?? 'json' }),
        ...(batch_export === undefined ? {} : { batch_export }),
        ...(enabled === undefined ? {} : { enabled: enabled ?? true }),
      };
      await validateFields(context, teamOf(request), fields, found.format);
      const { id } = request.params;
      const updated = await updateWebhook(pool, keyRing, teamOf(request), id, fields, secret);
      if (!updated) throw notFound();
      const { url: newUrl, ...shown } = fields;
      request.changedFields = [
        ...fieldChanges(found, shown),
        ...(newUrl === undefined ? [] : [secretChange('url')]),
        ...(secret === undefined ? [] : [secretChange('secret')]),
      ];
      return toWebhookResponse(context, request, updated);
    },
  );

  app.delete(
    '/webhooks/:id',
    {
      ...writesExports,
      schema: {
        summary: 'Delete webhook',
        description: 'Pending deliveries are dropped.',
        params: webhookPath,
        response: { 204: noContent, ...errorResponses },
      },
    },
    async (request, reply) => {
      if (!(await deleteWebhook(pool, teamOf(request), request.params.id))) throw notFound();
      return reply.code(204).send();
    },
  );

  app.post(
    '/webhooks/:id/test',
    {
      ...webhookTest.access,
      schema: {
        summary: 'Test webhook',
        description: 'Sends one message of type `test`, without retries, and returns the result.',
        params: webhookPath,
        body: emptyBody,
        response: { 200: webhookTestSchema, 202: jobSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      if (!(await findWebhook(pool, teamOf(request), id))) throw notFound();
      const signal = disconnectSignal(reply);
      return context.shares.tests(request, signal, () =>
        answerWithJob(
          context,
          { request, reply, signal },
          webhookTest,
          { target: id, parameters: {} },
          testFailures('Nothing was sent.', 'No worker has sent the test in time.'),
        ),
      );
    },
  );
};

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
    payload: JSON.parse(messageBody(format, notification, settings, null)) as Record<string, unknown>,
    attempt_log: [...attempt_log],
  };
}

/** List and retrieve the deliveries of a webhook, and resend one. */
export const webhookDeliveryRoutes =
  (notifications: ResendService['notifications']): ProjectRoutes =>
  (app, context) => {
    const { settings, pool } = context;

    app.get(
      '/webhooks/:id/deliveries',
      {
        ...readsExports,
        schema: {
          summary: 'List webhook deliveries',
          description:
            'What the webhook received and what it did not, newest first, as long as logs are kept.',
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
        ...readsExports,
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
        ...writesExports,
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
        const resent = await resend({ ...context, notifications }, id, delivery_id);
        if (resent.created) {
          const path = `/webhooks/${id}/deliveries/${resent.delivery_id}/`;
          void reply.code(201).header('location', projectUrl(request, settings, path));
        }
        return reply.send(await readResponse(context, id, resent.delivery_id));
      },
    );
  };
