import { auditOutcomes, readAuditNames } from '../../../journal/audit.ts';
import { readsAudit } from '../../audit/routes.ts';
import { auditNames } from '../../audit/schema.ts';
import { teamOf } from '../../requests.ts';
import type { ProjectRoutes } from '../../route_context.ts';
import { errorResponses } from '../../schemas.ts';

/** What the filters of the page of the audit trail offer. */
export const auditNameRoutes: ProjectRoutes = (app, { pool }) => {
  app.get(
    '/console/audit/names',
    { ...readsAudit, schema: { hide: true, response: { 200: auditNames, ...errorResponses } } },
    async (request) => {
      const { users, keys, actions } = await readAuditNames(pool, teamOf(request));
      return { users: [...users], keys: [...keys], actions: [...actions], outcomes: [...auditOutcomes] };
    },
  );
};
