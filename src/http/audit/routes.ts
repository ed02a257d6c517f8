import { auditOutcomes, readAuditEvents, readAuditNames } from '../../journal/audit.ts';
import { parseChoices, type ProjectRoutes, teamOf } from '../command_service.ts';
import { offsetPage, resolveListTimes } from '../paging.ts';
import { errorResponses, pageOf } from '../schemas.ts';
import { auditEventSchema, auditNames, auditQuery } from './schema.ts';

const readsAudit = { config: { scope: 'audit:read' } } as const;

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

/** What the filters of the console's page offer. */
export const consoleAuditRoutes: ProjectRoutes = (app, { pool }) => {
  app.get(
    '/console/audit/names',
    { ...readsAudit, schema: { hide: true, response: { 200: auditNames, ...errorResponses } } },
    async (request) => {
      const { users, keys, actions } = await readAuditNames(pool, teamOf(request));
      return { users: [...users], keys: [...keys], actions: [...actions], outcomes: [...auditOutcomes] };
    },
  );
};
