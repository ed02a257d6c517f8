// Import rules. A command flows one way: http → signal → workflow → activity → journal → projection → http.

/**
 * The layers, lowest first. A folder imports from the layers below its own, never from its own layer or from one above. A
 * new folder needs a place here.
 */
const layers = [
  ['src/client', 'src/concurrency', 'src/contract', 'src/domain', 'src/config', 'src/network', 'src/tracing'],
  ['src/telemetry', 'src/dialect', 'src/journal', 'src/foreign_bytes'],
  ['src/filters', 'src/jobs'],
  ['src/source', 'src/projections'],
  ['src/encoding', 'src/notifications'],
  ['src/destination', 'src/readers'],
  ['src/tables', 'src/reading'],
  ['src/decisions', 'src/failures', 'src/queries', 'src/verify', 'src/migrate', 'src/foreign_parsers'],
  ['src/export'],
  ['src/maintenance', 'src/table_commits'],
  ['activities'],
  ['workflows'],
  ['src/temporal'],
  ['src/http'],
  ['src/console', 'src/local_stack'],
  ['src/cli'],
  ['src/build'],
];

const within = (folders) => `^(${folders.join('|')})/`;

/** One rule per folder: no import of another folder in its layer or above. */
const layerRules = layers.flatMap((layer, number) =>
  layer.flatMap((folder) => {
    const outOfReach = [...layer.filter((other) => other !== folder), ...layers.slice(number + 1).flat()];
    return outOfReach.length === 0
      ? []
      : [
          {
            name: `${folder.replace('src/', '')}-imports-only-from-layers-below`,
            severity: 'error',
            from: { path: within([folder]) },
            to: { path: within(outOfReach) },
          },
        ];
  }),
);

/** Files of src/queries: the warehouse over PostgreSQL and what a project keeps for it, and the endpoint. */
const servesQueries =
  'postgres_warehouse|query_source|source_schema|registrable_relation|warehouse_tables|property_definitions|stored_actions|sample_properties|saved_queries';
const answersQueries =
  'handle_query|prepared_query|variables|running_queries|run_query|run_background|statuses|results|responses|query_slots|rate_limiter|editor';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      from: { pathNot: '^src/dialect/test/' },
      to: { circular: true },
    },
    {
      name: 'dialect-stands-alone',
      comment: 'The dialect is a package of its own, which knows nothing of exportd.',
      severity: 'error',
      from: { path: '^src/dialect/', pathNot: '^src/dialect/test/' },
      to: { pathNot: '^(src/dialect/(?!test/)|node_modules/(@types/)?luxon/|node:crypto$|crypto$)' },
    },
    {
      name: 'tests-of-dialect-know-the-dialect-alone',
      comment: 'Of exportd they need the test database.',
      severity: 'error',
      from: { path: '^src/dialect/test/' },
      to: { path: '^(src|activities|workflows|test)/', pathNot: '^(src/dialect|test/setup)/' },
    },
    {
      name: 'queries-know-a-warehouse',
      comment:
        'Kinds of queries and what computes them ask the port of src/queries/warehouse.ts. Files named here serve it, or the endpoint.',
      severity: 'error',
      from: {
        path: '^src/queries/',
        pathNot: [
          `^src/queries/(${servesQueries}|${answersQueries})\\.ts$`,
          '^src/queries/(query_role|draft_sql)/',
          '^src/queries/threads/thread_executor\\.ts$',
        ],
      },
      to: {
        path: [
          '^(src|activities|workflows)/(?!queries/|dialect/|filters/|client/exact_numbers\\.ts)',
          `^src/queries/(${servesQueries}|${answersQueries})\\.ts$`,
          '^src/queries/(query_role|draft_sql)/',
        ],
      },
    },
    {
      name: 'dialect-by-name',
      comment: 'What the package exports (src/dialect/package.json) is what exportd may use.',
      severity: 'error',
      from: { path: '^(src|activities|workflows)/', pathNot: '^src/dialect/' },
      to: { path: '^src/dialect/', dependencyTypesNot: ['aliased-workspace'] },
    },
    ...layerRules,
    {
      name: 'every-folder-has-a-layer',
      comment: 'Add the folder to `layers` in .config/dependency-cruiser.cjs.',
      severity: 'error',
      from: { path: '^(src|workflows|activities)/', pathNot: within(layers.flat()) },
      to: {},
    },
    {
      name: 'prefetch-needs-no-package',
      comment: 'It runs before npm has installed the packages.',
      severity: 'error',
      from: { path: '^src/local_stack/servers/prefetch' },
      to: { path: '^(node_modules|src/dialect)/', reachable: true },
    },
    {
      name: 'workflows-are-sandboxed',
      comment:
        'At run time workflow code imports the contract and the workflow library only. Types may come from below.',
      severity: 'error',
      from: { path: '^workflows/' },
      to: {
        pathNot: '^(workflows/|src/contract/|node_modules/@temporalio/(workflow|common)/)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'contract-imports-nothing',
      comment: 'No package either: the contract is part of the sandboxed workflow bundle.',
      severity: 'error',
      from: { path: '^src/contract/' },
      to: { pathNot: '^src/contract/' },
    },
    {
      name: 'domain-is-pure',
      comment: 'The domain needs a time zone library and nothing else.',
      severity: 'error',
      from: { path: '^src/domain/' },
      to: { pathNot: '^(src/domain/|node_modules/(@types/)?luxon/)' },
    },
    {
      name: 'http-does-not-call-activities',
      comment: 'The HTTP API stores commands and signals workflows; only workers run activities.',
      severity: 'error',
      from: { path: '^src/http/' },
      to: { path: '^(activities|src/(export|maintenance))/' },
    },
    {
      name: 'console-is-browser-code',
      comment: 'The server sends src/console to browsers: of the rest of exportd it may know types alone.',
      severity: 'error',
      from: { path: '^src/console/' },
      to: {
        pathNot: '^(src/console/|src/client/|node_modules/(preact|@preact|htm|uplot)/)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'client-imports-nothing',
      comment:
        'Programs of users and browsers load it. A fresh clone lacks operations.ts until a check makes it.',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { pathNot: '^(src/client/|\\./operations\\.ts$)' },
    },
    {
      name: 'client-runs-without-types',
      comment: 'operations.ts is not in git: what runs does not need it.',
      severity: 'error',
      from: {},
      to: { path: '^src/client/operations', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'export-knows-no-table',
      comment: 'A table is a PublishTarget, which the worker passes to the export.',
      severity: 'error',
      from: {
        path: '^(src/(domain|journal|source|encoding|export)|workflows)/|^activities/(run|run_step|schedule)',
      },
      to: { path: '^src/(tables|table_commits)/' },
    },
    {
      name: 'data-plane-stands-alone',
      comment: 'Code that reads and encodes rows does not use the control database.',
      severity: 'error',
      from: { path: '^src/(dialect|filters|source|encoding)/' },
      to: { path: '^src/(journal|projections|notifications|telemetry)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    detectProcessBuiltinModuleCalls: false,
    enhancedResolveOptions: {
      extensions: ['.ts', '.mjs', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
