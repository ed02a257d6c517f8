import batchExports from './batch_exports/examples.json' with { type: 'json' };
import runs from './runs/examples.json' with { type: 'json' };
import backfills from './backfills/examples.json' with { type: 'json' };
import intervals from './intervals/examples.json' with { type: 'json' };
import verifications from './verifications/examples.json' with { type: 'json' };
import previews from './previews/examples.json' with { type: 'json' };
import source from './source/examples.json' with { type: 'json' };
import tables from './tables/examples.json' with { type: 'json' };
import jobs from './jobs/examples.json' with { type: 'json' };
import webhooks from './webhooks/examples.json' with { type: 'json' };
import dashboards from './dashboards/examples.json' with { type: 'json' };
import keys from './keys/examples.json' with { type: 'json' };
import audit from './audit/examples.json' with { type: 'json' };
import projects from './projects/examples.json' with { type: 'json' };
import query from './query/examples.json' with { type: 'json' };
import { auditRoutes } from './audit/routes.ts';
import { backfillRoutes } from './backfills/routes.ts';
import { batchExportRoutes } from './batch_exports/routes.ts';
import { activeRunRoutes } from './console/pages/active_runs.ts';
import { auditNameRoutes } from './console/pages/audit_names.ts';
import { coverageRoutes } from './console/pages/coverage.ts';
import { overviewRoutes } from './console/pages/overview.ts';
import { runStepRoutes } from './console/pages/run_steps.ts';
import { scopeRoutes } from './console/pages/scopes.ts';
import { sameTroubleRoutes } from './console/pages/same_trouble.ts';
import { timelineRoutes } from './console/pages/timeline.ts';
import { dashboardRoutes } from './dashboards/routes.ts';
import { decisionOperation, differenceOperation, differenceRoutes } from './intervals/difference_routes.ts';
import { intervalDetailRoutes } from './intervals/detail_routes.ts';
import { intervalRoutes, logRoutes, readingRoutes } from './intervals/routes.ts';
import type { JobOperation } from './jobs/answer_job.ts';
import { keyRoutes } from './keys/routes.ts';
import { previewRoutes } from './previews/routes.ts';
import { installationRoutes, projectRoutes, projectUserRoutes } from './projects/routes.ts';
import { queryResource } from './query/query_resource.ts';
import { startQueries } from './query/start_queries.ts';
import type { Resource } from './resource.ts';
import type { ProjectRoutes } from './route_context.ts';
import { failedRunRoutes, runRoutes } from './runs/routes.ts';
import { sourceRoutes } from './source/routes.ts';
import { tableOperations, tableRoutes } from './tables/routes.ts';
import { verificationOperation, verificationRoutes } from './verifications/routes.ts';
import type { ServerParts, StartedResource } from './server_parts.ts';
import { startWebhooks, webhookResource } from './webhooks/webhook_resource.ts';
import { batchExportActionRoutes } from './batch_exports/action_routes.ts';
import { batchExportCheckRoutes } from './batch_exports/check_routes.ts';
import { destinationTest, destinationTestRoutes } from './batch_exports/destination_test_routes.ts';

export { outgoingMessages } from './webhooks/outgoing_messages.ts';

/** Whose paths have no project in them. */
export const wholeResources: readonly ProjectRoutes[] = [projectRoutes, installationRoutes];

/** Below each project. Where two match a path, the router prefers the one without parameters. */
export const projectResources: readonly ProjectRoutes[] = [
  batchExportRoutes,
  batchExportCheckRoutes,
  destinationTestRoutes,
  batchExportActionRoutes,
  failedRunRoutes,
  runRoutes,
  backfillRoutes,
  intervalRoutes,
  intervalDetailRoutes,
  differenceRoutes,
  verificationRoutes,
  sourceRoutes,
  previewRoutes,
  readingRoutes,
  tableRoutes,
  logRoutes,
  dashboardRoutes,
  keyRoutes,
  projectUserRoutes,
  auditRoutes,
];

/** Their operations that jobs carry out. */
export const jobOperations: readonly JobOperation[] = [
  destinationTest,
  verificationOperation,
  differenceOperation,
  decisionOperation,
  ...tableOperations,
];

/** What only the pages of the console read. */
export const consoleResources: readonly ProjectRoutes[] = [
  overviewRoutes,
  timelineRoutes,
  sameTroubleRoutes,
  activeRunRoutes,
  runStepRoutes,
  coverageRoutes,
  auditNameRoutes,
  scopeRoutes,
];

/** What the document of the API shows of their operations, by method and path below the project. */
export const resourceExamples = {
  ...batchExports,
  ...runs,
  ...backfills,
  ...intervals,
  ...verifications,
  ...previews,
  ...source,
  ...tables,
  ...jobs,
  ...webhooks,
  ...dashboards,
  ...keys,
  ...audit,
  ...projects,
  ...query,
};

/** The groups of operations, in the order of the page, by the start of their paths below a project. */
export const resourceTags = [
  { name: 'Batch exports', prefixes: ['/batch_exports'] },
  { name: 'Runs', prefixes: ['/batch_exports/{batch_export_id}/runs'] },
  { name: 'Backfills', prefixes: ['/batch_exports/{batch_export_id}/backfills'] },
  {
    name: 'Intervals and logs',
    prefixes: ['/batch_exports/{batch_export_id}/intervals', '/batch_exports/{id}/logs'],
  },
  { name: 'Jobs', prefixes: ['/jobs'] },
  { name: 'Webhooks', prefixes: ['/webhooks'] },
  { name: 'Source', prefixes: ['/source'] },
  { name: 'Queries', prefixes: ['/query', '/saved_queries', '/actions'] },
  { name: 'Dashboards', prefixes: ['/dashboards'] },
  { name: 'API keys', prefixes: ['/keys', '/users', '/api/users'] },
  { name: 'Audit', prefixes: ['/audit'] },
  { name: 'Projects', prefixes: ['/api/projects'] },
  { name: 'Monitoring', prefixes: ['/healthz', '/livez', '/readyz'] },
] as const;

/** What a deployment may do without; each with what its routes need beside their context. */
export const optionalResources = (
  queries: Parameters<typeof queryResource>[0],
  notifications: Parameters<typeof webhookResource>[0],
): readonly Resource[] => [webhookResource(notifications), queryResource(queries)];

/** The same in a server, with what they start there. */
export const startResources = (parts: ServerParts): readonly StartedResource[] => [
  startWebhooks(parts),
  startQueries(parts),
];
