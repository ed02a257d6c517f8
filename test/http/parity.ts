// What users can do, and where: npx node test/http/parity.ts prints it.

/** One thing that users do, in the API, on the command line and in the console. */
interface Capability {
  readonly name: string;
  /** Ids of operations of the OpenAPI document. */
  readonly api: readonly string[];
  /** Commands without `exportd`. */
  readonly cli: readonly string[];
  /** Where the console has it, and a part of the source there that uses it. Null with the reason in `without`. */
  readonly console: { readonly at: string; readonly file: string; readonly uses: string } | null;
  /** Why a column is empty. */
  readonly without?: string;
}

const ofExport = 'pages/export';

export const capabilities: readonly Capability[] = [
  {
    name: 'list, create, change, delete exports',
    api: [
      'listBatchExports',
      'createBatchExport',
      'retrieveBatchExport',
      'updateBatchExport',
      'replaceBatchExport',
      'deleteBatchExport',
    ],
    cli: ['export list', 'export show', 'export create', 'export update', 'export delete', 'apply'],
    console: {
      at: 'list, form and page of an export',
      file: 'pages/edit/edit_form.ts',
      uses: "'batch_exports/'",
    },
  },
  {
    name: 'condition, and why',
    api: ['explainConditionOfBatchExport'],
    cli: ['why', 'status', 'export show'],
    console: { at: 'top of the page of an export, list', file: `${ofExport}/page.ts`, uses: '/why/' },
  },
  {
    name: 'pause and unpause',
    api: ['pauseBatchExport', 'unpauseBatchExport'],
    cli: ['export pause', 'export unpause'],
    console: { at: 'page of an export', file: `${ofExport}/export_actions.ts`, uses: '/unpause/' },
  },
  {
    name: 'backfill, and its rows before it starts',
    api: [
      'backfillBatchExport',
      'createBackfill',
      'listBackfills',
      'retrieveBackfill',
      'pauseBackfill',
      'unpauseBackfill',
      'cancelBackfill',
    ],
    cli: [
      'export backfill',
      'backfill list',
      'backfill show',
      'backfill pause',
      'backfill unpause',
      'backfill cancel',
    ],
    console: { at: 'tab Backfills', file: `${ofExport}/backfills.ts`, uses: '/backfills/' },
  },
  {
    name: 'runs: list, retry, cancel',
    api: ['listBatchExportRuns', 'retrieveBatchExportRun', 'retryBatchExportRun', 'cancelBatchExportRun'],
    cli: ['run list', 'run show', 'export retry', 'run cancel'],
    console: { at: 'tab Runs', file: `${ofExport}/runs.ts`, uses: '/runs/' },
  },
  {
    name: 'retry failed',
    api: ['retryFailedRunsOfBatchExports'],
    cli: ['export retry'],
    console: { at: 'button of the condition', file: `${ofExport}/page.ts`, uses: 'toAction' },
  },
  {
    name: 'intervals, keep or remove rows that the source lacks',
    api: [
      'listBatchExportIntervals',
      'retrieveBatchExportInterval',
      'retrieveDifferenceOfInterval',
      'decideAboutDifferenceOfInterval',
    ],
    cli: ['export intervals', 'export interval', 'export difference'],
    console: {
      at: 'calendar, page of an interval',
      file: 'pages/interval/difference.ts',
      uses: '/difference/',
    },
  },
  {
    name: 'verify',
    api: ['verifyInterval', 'listVerificationsOfInterval'],
    cli: ['verify'],
    console: { at: 'page of an interval', file: 'pages/interval/comparison.ts', uses: '/verifications/' },
  },
  {
    name: 'find an event',
    api: ['findEventOfInterval'],
    cli: ['export find'],
    console: { at: 'page of an interval', file: 'pages/interval/files.ts', uses: '/row/' },
  },
  {
    name: 'preview and estimate',
    api: [
      'previewNewBatchExport',
      'previewUpdateOfBatchExport',
      'estimateNewBatchExport',
      'estimateUpdateOfBatchExport',
    ],
    cli: ['export preview', 'export estimate'],
    console: { at: 'side of the form', file: 'pages/edit/side_panels.ts', uses: "'estimate'" },
  },
  {
    name: 'check an export before it is saved',
    api: ['checkNewBatchExport', 'checkUpdateOfBatchExport'],
    cli: ['apply'],
    console: null,
    without: 'The form shows the errors of the request that saves.',
  },
  {
    name: 'test a destination',
    api: [
      'testDestination',
      'testDestinationOfBatchExport',
      'listStepsOfTestOfDestination',
      'runStepOfTestOfDestination',
      'runStepOfTestOfDestinationOfBatchExport',
    ],
    cli: ['destination test'],
    console: { at: 'form', file: 'pages/edit/edit_form.ts', uses: 'test/' },
  },
  {
    name: 'source check',
    api: ['checkSource'],
    cli: ['source check'],
    console: { at: 'form', file: 'pages/edit/side_panels.ts', uses: 'source/check/' },
  },
  {
    name: 'map a table: view, index, first rows',
    api: ['mapTable'],
    cli: ['source map'],
    console: { at: 'page Map a table', file: 'pages/source/page.ts', uses: "'source/map/'" },
  },
  {
    name: 'manifests, and how to read the files',
    api: ['listBatchExportManifests', 'retrieveHowFilesOfBatchExportAreRead'],
    cli: ['export manifests', 'export reading'],
    console: { at: 'tab Read', file: `${ofExport}/reading.ts`, uses: '/reading/' },
  },
  {
    name: 'table: describe, versions, check, repair',
    api: [
      'retrieveTableOfBatchExport',
      'listVersionsOfTableOfBatchExport',
      'checkTableOfBatchExport',
      'repairTableOfBatchExport',
      // While it takes longer than its request.
      'retrieveJob',
    ],
    cli: ['table describe', 'table history', 'table check', 'table repair'],
    console: { at: 'tab Table', file: `${ofExport}/table.ts`, uses: '/table/' },
  },
  {
    name: 'logs',
    api: ['retrieveBatchExportLogs', 'retrieveBatchExportRunLogs'],
    cli: ['export logs'],
    console: { at: 'tab Log', file: `${ofExport}/log.ts`, uses: '/logs/' },
  },
  {
    name: 'webhooks, of an export and of the project',
    api: [
      'listWebhooks',
      'createWebhook',
      'retrieveWebhook',
      'updateWebhook',
      'deleteWebhook',
      'testWebhook',
    ],
    cli: ['webhook list', 'webhook create', 'webhook update', 'webhook delete', 'webhook test'],
    console: { at: 'tab and page Webhooks', file: `${ofExport}/webhooks.ts`, uses: "'webhooks/'" },
  },
  {
    name: 'deliveries of webhooks',
    api: ['listWebhookDeliveries', 'retrieveWebhookDelivery', 'resendWebhookDelivery'],
    cli: ['webhook deliveries', 'webhook resend'],
    console: { at: 'tab and page Webhooks', file: `${ofExport}/webhooks.ts`, uses: '/deliveries/' },
  },
  {
    name: 'API keys: name, prefix, last use, expiry',
    api: ['listApiKeys', 'createApiKey', 'retrieveApiKey', 'rotateApiKey', 'revokeApiKey'],
    cli: ['key list', 'key create', 'key rotate', 'key revoke'],
    console: { at: 'page of keys', file: 'pages/keys/page.ts', uses: "'keys/'" },
  },
  {
    name: 'users',
    api: ['listUsers', 'listAllUsers', 'createUser', 'disableUser', 'enableUser'],
    cli: ['user list', 'user create', 'user disable', 'user enable'],
    console: { at: 'page of keys', file: 'pages/keys/installation.ts', uses: "'/api/users/'" },
  },
  {
    name: 'projects',
    api: ['listProjects', 'createProject', 'renameProject'],
    cli: ['project list', 'project create', 'project rename'],
    console: {
      at: 'choice of the project, page of keys',
      file: 'pages/keys/installation.ts',
      uses: "'/api/projects/'",
    },
  },
  {
    name: 'health of the server',
    api: ['checkHealth', 'checkLiveness', 'checkReadiness'],
    cli: ['status'],
    console: { at: 'bar of every page', file: 'app.ts', uses: '/readyz' },
  },
  {
    name: 'audit trail: who changed what',
    api: ['listAuditEvents'],
    cli: ['audit'],
    console: { at: 'page Audit', file: 'pages/audit/page.ts', uses: "'audit" },
  },
  {
    name: 'queries',
    api: ['createQuery', 'retrieveQuery', 'deleteQuery', 'checkAuthForAsync', 'retrieveDraftSql'],
    cli: [],
    console: { at: 'page Query', file: 'pages/query/page.ts', uses: 'query' },
    without:
      '`exportd query explain` shows the SQL of a query, and `query run` a saved one; the API runs any.',
  },
  {
    name: 'saved queries',
    api: [
      'listSavedQueries',
      'createSavedQuery',
      'retrieveSavedQuery',
      'updateSavedQuery',
      'deleteSavedQuery',
    ],
    cli: ['query run', 'query save', 'query list', 'query rename', 'query delete'],
    console: { at: 'side of the page Query', file: 'pages/query/saved_queries.ts', uses: "'saved_queries/'" },
  },
  {
    name: 'actions, which queries use',
    api: ['listActions', 'createAction', 'retrieveAction', 'updateAction', 'deleteAction'],
    cli: ['action list', 'action create', 'action get', 'action update', 'action delete'],
    console: null,
    without: 'Actions are defined once, by the command line or by programs.',
  },
  {
    name: 'dashboards',
    api: ['listDashboards'],
    cli: ['dashboard list', 'dashboard create'],
    console: null,
    without: 'The console has none until they show something.',
  },
];

const cell = (names: readonly string[]): string => (names.length === 0 ? '–' : names.join(', '));

if (process.argv[1] === import.meta.filename) {
  for (const { name, api, cli, console: page, without = '' } of capabilities) {
    process.stdout.write(
      `${name}\n  API: ${cell(api)}\n  exportd: ${cell(cli)}\n  console: ${page?.at ?? '–'} ${without}\n`,
    );
  }
}
