import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { auditOutcomes, readAuditEvents, streamAuditEvents } from '../../journal/audit.ts';
import { invalid } from '../api_error.ts';
import { parseChoices, teamOf } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { offsetPage } from '../paging.ts';
import { errorResponses, pageOf } from '../schemas.ts';
import { auditCsv } from './audit_csv.ts';
import { auditEventSchema, auditQuery } from './schema.ts';
import { resolveListTimes } from '../list_times.ts';

export const readsAudit = { config: { scope: 'audit:read' } } as const;

const namesIn = (parameter: string | string[] | undefined): string[] | undefined =>
  parameter === undefined ? undefined : [parameter].flat().flatMap((text) => text.split(','));

/**
 * Sends CSV as it is read: a page of events is in memory, and the next is read once the client took it.
 * @throws when the first page cannot be read; later the connection is cut, so that no part looks like the whole
 */
async function sendCsv(reply: FastifyReply, lines: AsyncGenerator<string>): Promise<never> {
  const first = await lines.next();
  // Pages that are read later use connections within the share of the project too.
  const inRequest = AsyncLocalStorage.snapshot();
  async function* all(): AsyncGenerator<string> {
    for (let next = first; next.done !== true; next = await inRequest(() => lines.next())) yield next.value;
  }
  const day = new Date().toISOString().slice(0, 10);
  return reply
    .type('text/csv; charset=utf-8; header=present')
    .header('content-disposition', `attachment; filename="audit-${day}.csv"`)
    .send(Readable.from(all(), { objectMode: false })) as never;
}

/** List the audit trail of a project. */
export const auditRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/audit',
    {
      ...readsAudit,
      schema: {
        summary: 'List audit events',
        description:
          'Who changed what in the project, and each field before and after, newest first, as long as ' +
          "`EXPORTD_AUDIT_RETENTION`. Reads are not recorded. As CSV, a text that spreadsheets would run as a formula begins with `'`.",
        querystring: auditQuery,
        response: { 200: pageOf(auditEventSchema), ...errorResponses },
      },
    },
    async (request, reply) => {
      const query = await resolveListTimes(pool, teamOf(request), request.query);
      const { user, key, object, outcome, since, until, limit, offset } = query;
      const filter = {
        team_id: teamOf(request),
        user,
        key,
        actions: namesIn(query.action),
        excluded_actions: namesIn(query.exclude_action),
        object,
        outcomes: parseChoices('outcome', outcome, auditOutcomes),
        since,
        until,
      };
      void reply.header('vary', 'accept');
      const { format = /\btext\/csv\b/i.test(request.headers.accept ?? '') ? 'csv' : 'json' } = query;
      if (format === 'csv') {
        if (offset > 0) throw invalid('CSV has no pages: omit `offset`.', 'offset');
        return sendCsv(reply, auditCsv(streamAuditEvents(pool, filter, limit)));
      }
      const window = { limit: limit ?? 100, offset };
      return offsetPage(request, settings, window, await readAuditEvents(pool, filter, window));
    },
  );
};
