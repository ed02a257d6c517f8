import { callerOf, requireScope } from '../plugins/authentication.ts';
import { sourceError } from '../plugins/errors.ts';
import { disconnectSignal, readsSource, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { sourceCheckQuery, sourceMapBody, sourceMappingSchema, sourceReportSchema } from './schema.ts';

/** Check the relations that exports read, and draft a view over a table of another form. */
export const sourceRoutes: ProjectRoutes = (app, context) => {
  const { source, shares } = context;

  app.get(
    '/source/check',
    {
      ...writesExports,
      schema: {
        summary: 'Check the source',
        description:
          'Whether exports can read the source, and the SQL that fixes what they cannot. Relations that exportd does not read are ' +
          'listed for keys with `source:read` alone.',
        querystring: sourceCheckQuery,
        response: { 200: sourceReportSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const isReader = callerOf(request).scopes.includes('source:read');
      if (request.query.table !== undefined) requireScope(callerOf(request), 'source:read');
      const signal = disconnectSignal(reply);
      try {
        const report = await shares.previews(request, signal, () =>
          source.check(teamOf(request), request.query, signal),
        );
        return {
          ...report,
          relations: [...report.relations],
          findings: [...report.findings],
          tables: isReader ? [...report.tables] : [],
          views: report.views.map((view) => ({ ...view, to_choose: [...view.to_choose] })),
        };
      } catch (error) {
        throw sourceError(error) ?? error;
      }
    },
  );

  app.post(
    '/source/map',
    {
      ...readsSource,
      schema: {
        summary: 'Map table',
        description:
          'Drafts a view of events over a table, with its index and grants as one script, and shows its first rows, which may be ' +
          'of any project. It changes nothing.',
        body: sourceMapBody,
        response: { 200: sourceMappingSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { table, columns: chosen } = request.body;
      const signal = disconnectSignal(reply);
      try {
        const { tables, mapping } = await shares.previews(request, signal, () =>
          source.map(teamOf(request), { table, chosen }, signal),
        );
        if (mapping === null) return { tables: [...tables], mapping };
        const { view, isRead, columns, roles, rows, script } = mapping;
        return {
          tables: [...tables],
          mapping: {
            columns: [...columns],
            roles: [...roles],
            view: view.name,
            setting: view.setting,
            is_read: isRead,
            to_choose: [...view.to_choose],
            script,
            rows: rows && [...rows],
          },
        };
      } catch (error) {
        throw sourceError(error) ?? error;
      }
    },
  );
};
