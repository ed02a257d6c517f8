import { auditOutcomes, readAuditEvents } from '../../journal/audit.ts';
import { parseChoices, teamOf } from '../requests.ts';
import { type ProjectRoutes } from '../route_context.ts';
import { offsetPage, resolveListTimes } from '../paging.ts';
import { errorResponses, pageOf } from '../schemas.ts';
import { auditEventSchema, auditQuery } from './schema.ts';

export const readsAudit = { config: { scope: 'audit:read' } } as const;

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
          '`EXPORTD_AUDIT_RETENTION`. Reads are not recorded.',
        querystring: auditQuery,
        response: { 200: pageOf(auditEventSchema), ...errorResponses },
      },
    },
    async (request) => {
      const query = await resolveListTimes(pool, teamOf(request), request.query);
      const { user, key, action, object, outcome, since, until } = query;
      const filter = {
        team_id: teamOf(request),
        user,
        key,
        actions: action === undefined ? undefined : [action].flat().flatMap((text) => text.split(',')),
        object,
        outcomes: parseChoices('outcome', outcome, auditOutcomes),
        since,
        until,
      };
      return offsetPage(request, settings, query, await readAuditEvents(pool, filter, query));
    },
  );
};
