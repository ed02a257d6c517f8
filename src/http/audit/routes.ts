import { auditOutcomes, readAuditEvents } from '../../journal/audit.ts';
import { parseChoices, type ProjectRoutes, teamOf } from '../command_service.ts';
import { offsetPage, resolveListTimes } from '../paging.ts';
import { errorResponses, pageOf } from '../schemas.ts';
import { auditEventSchema, auditQuery } from './schema.ts';

/** List the audit trail of a project. */
export const auditRoutes: ProjectRoutes = (app, { pool, settings }) => {
  app.get(
    '/audit',
    {
      config: { scope: 'audit:read' },
      schema: {
        summary: 'List audit events',
        description:
          'Who changed what in the project, and which attempts of its keys were refused, newest first, as long as ' +
          '`EXPORTD_AUDIT_RETENTION`. Attempts without a valid key belong to no project: operators read them with ' +
          '`exportd audit`. Reads are not recorded.',
        querystring: auditQuery,
        response: { 200: pageOf(auditEventSchema), ...errorResponses },
      },
    },
    async (request) => {
      const query = await resolveListTimes(pool, teamOf(request), request.query);
      const { user, key, action, object, outcome, since } = query;
      const filter = {
        team_id: teamOf(request),
        user,
        key,
        actions: action === undefined ? undefined : [action].flat().flatMap((text) => text.split(',')),
        object,
        outcomes: parseChoices('outcome', outcome, auditOutcomes),
        since,
      };
      return offsetPage(request, settings, query, await readAuditEvents(pool, filter, query));
    },
  );
};
