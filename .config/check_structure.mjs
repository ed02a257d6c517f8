// Rules that the import check cannot state. `npm run structure` exits with 1 and names the files if one is broken.
//
// 1. The core path (command, schedule, run, rows, manifest) names no optional capability: no module, type, table or setting of
//    it. Nor does it reach a module of one through the imports of other files.
// 2. An optional capability is named in at most six files outside its own folders.
// 3. A file has one topic, and is named after it. No program sees that.
// 4. The rows of a read model are written by one module: that of its projection.
//
// Names that a program puts together, such as `exportd.${table}`, it does not see.
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import process from 'node:process';

const root = process.argv[2] ?? join(import.meta.dirname, '..');
const mostFiles = 6;

/** What a command passes through until its interval has a manifest. */
const core =
  /^(src\/(domain|journal|projections|source|encoding|destination|decisions|export)\/|src\/http\/(command_service|command_outcomes|cancelled_runs)\.ts|src\/temporal\/clients\/(schedule_client|backfill_client|run_input|run_starter)\.ts|activities\/(run|run_step|schedule|backfill)\.ts|workflows\/(run|schedule|inbox|signal_counter|backfill)\.ts)/;

/**
 * A comparison on request is a verification. `own`: its folders and files, of which the core may use what is `shared`. `words`: the
 * names of its modules, types and tables; in `homonyms` they mean something else. `settings`: those that the core may not read.
 */
const capabilities = {
  table: {
    own: /^src\/(tables|table_commits|http\/tables|console|http\/console)\/|^src\/cli\/commands\/tables\.ts/,
    words:
      // The field `table_format` of a destination is data while nothing compares it, and so is `table_changed`, a cause of the condition.
      /\b(?:\w*Table(?:Commit|Repair|Version|Health|Folder|Store)\w*|table_(?:commit|repair|location|version|etag|adds|removes|requests?|fault|store)\w*|delta|deltalake|tables\/routes\.ts)\b|\btable_format\s*[!=]==|(?:\.\.|src)\/tables\/\w+\.ts/,
    settings: /\bEXPORTD_TABLE_\w+/,
  },
  webhooks: {
    own: /^src\/(notifications|http\/webhooks|console|http\/console)\/|^activities\/notification\.ts|^src\/contract\/notification_input\.ts|^src\/config\/webhook_settings\.ts|^src\/temporal\/(notifications|clients\/notification_client|reconcilers\/deliveries)\.ts|^workflows\/(notification|delivery_options|webhook_test)\.ts|^src\/cli\/commands\/webhooks\.ts/,
    words: /\b\w*(?:[wW]ebhook|[nN]otification)\w*\b|\bexportd\.(?:incidents|notified_conditions)\b/,
    settings: /\bEXPORTD_\w*WEBHOOK\w*/,
    // What LISTEN receives, a channel of events, and a section of OpenAPI.
    homonyms: [
      'src/http/command_outcomes.ts',
      'src/build/client_types.ts',
      'src/http/openapi/openapi.ts',
      'src/failures/fault_alarm.ts',
    ],
  },
  verification: {
    own: /^src\/(verify|http\/verifications|console|http\/console)\/|^src\/cli\/commands\/verify\.ts/,
    words: /\b\w*[vV]erification\w*\b|\bverify\//,
  },
  console: {
    own: /^src\/(console|http\/console)\//,
    words: /\/console\/|\b\w*Console[A-Z]\w*\b/,
    settings: /\bEXPORTD_CONSOLE\b/,
  },
  queries: {
    own: /^src\/(queries|dialect|filters|http\/query|console|http\/console)\/|^activities\/query\.ts|^src\/contract\/background_query_input\.ts|^src\/temporal\/(queries|clients\/query_client|reconcilers\/queries|worker\/query_worker)\.ts|^workflows\/background_query(_options)?\.ts|^src\/cli\/commands\/(query|properties|variables)\.ts|^src\/local_stack\/queries\.ts/,
    // Not the dialect: a package, in which filters and the selection of an export are written too.
    words:
      /\/queries(?:\/|\.ts)|\bbackgroundQuer|\b\w*Query(?:Kind|Execut)\w*\b|\bexportd\.(?:actions|property_definitions|quer\w+|saved_queries|warehouse_tables)\b/,
    settings: /\bEXPORTD_(?:QUERY|QUERIES|DRAFT_SQL)_\w+/,
    // Selections of exports are written in it, too.
    shared: /^src\/filters\//,
  },
};

/**
 * Without what people read, which may name anything: comments, and texts in single or double quotes that have a space, such as
 * descriptions and help. Template literals stay, because SQL is in them, and so do texts that name a table.
 */
const withoutSentences = (text) =>
  text.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/.*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, (found) => {
    if (found.startsWith('/')) return '';
    return found.includes(' ') && !/\bexportd\.[a-z]/.test(found) ? "''" : found;
  });

const files = new Map(
  ['src', 'activities', 'workflows'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map((file) => `${folder}/${file}`)
      // operations.ts is generated, and has every operation of the API.
      .filter(
        (file) =>
          file.endsWith('.ts') && !file.includes('node_modules/') && file !== 'src/client/operations.ts',
      )
      .map((file) => [file, withoutSentences(readFileSync(join(root, file), 'utf8'))]),
  ),
);

/** What breaks a rule, and how many files name what. */
const problems = [];
const counts = [];
for (const [name, { own, words, settings, homonyms = [] }] of Object.entries(capabilities)) {
  for (const [file, text] of files) {
    const found = core.test(file) && !own.test(file) ? settings?.exec(text) : null;
    if (found)
      problems.push(`Rule 1: ${file} is on the core path, and reads a setting of ${name}: "${found[0]}".`);
  }
  const foreign = [...files].flatMap(([file, text]) => {
    const found = own.test(file) || homonyms.includes(file) ? null : words.exec(text);
    return found ? [{ file, word: found[0] }] : [];
  });
  for (const { file, word } of foreign) {
    if (core.test(file)) problems.push(`Rule 1: ${file} is on the core path, and names ${name}: "${word}".`);
    else if (foreign.length > mostFiles)
      problems.push(
        `Rule 2: ${file} names ${name}: "${word}". ${foreign.length} files outside its folders do; ${mostFiles} may.`,
      );
  }
  for (const file of homonyms)
    if (!words.test(files.get(file) ?? ''))
      counts.push(`${file} has no word of ${name}: remove it from \`homonyms\``);
  counts.push(
    `${name}: ${foreign.length} files outside its folders, ${foreign.filter(({ file }) => core.test(file)).length} of them on the core path`,
  );
}

/** The files whose values a file imports. */
const importsOf = (file) =>
  [
    ...(files.get(file) ?? '').matchAll(
      /^(?:import|export) (?!type )([^;]*?)\bfrom '(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm,
    ),
  ].flatMap(([, names = '', path, dynamicPath]) => {
    const named = /^\{([^}]*)\}\s*$/.exec(names)?.[1];
    const areTypes = named
      ?.split(',')
      .filter((name) => name.trim())
      .every((name) => name.trim().startsWith('type '));
    return areTypes ? [] : [posix.join(posix.dirname(file), path ?? dynamicPath)];
  });

/** By file that the core path reaches: the one that imports it; undefined for those of the core path. */
const importers = new Map(
  [...files.keys()].filter((file) => core.test(file)).map((file) => [file, undefined]),
);
// The loop also visits what it adds. All settings are read together, also those of capabilities.
for (const file of importers.keys())
  if (file !== 'src/config/settings.ts')
    for (const imported of importsOf(file)) if (!importers.has(imported)) importers.set(imported, file);
for (const [name, { own, shared }] of Object.entries(capabilities))
  for (const [file, importer] of importers)
    if (importer !== undefined && own.test(file) && !shared?.test(file) && !own.test(importer))
      problems.push(`Rule 1: the core path reaches ${name}: ${importer} imports ${file}.`);

/** By table: the projection that declares its rows. */
const declaredBy = new Map();
for (const [file, text] of files)
  for (const [, table] of text.matchAll(/\bname: '(exportd\.\w+)',\s+key: \[/g)) {
    const other = declaredBy.get(table);
    if (other) problems.push(`Rule 4: ${file} and ${other} both declare the rows of ${table}.`);
    declaredBy.set(table, file);
  }
const tables = [...declaredBy.keys()].map((table) => table.replace('exportd.', '')).join('|');
const writes = new RegExp(
  `\\b(?:insert\\s+into|merge\\s+into|update|delete\\s+from|truncate|copy)\\s+(?:only\\s+)?exportd\\.(${tables})\\b(?!.*\\bto stdout)`,
  'gi',
);
for (const [file, text] of files)
  for (const [, table] of text.matchAll(writes))
    if (declaredBy.get(`exportd.${table}`) !== file)
      problems.push(
        `Rule 4: ${file} writes exportd.${table}, whose rows ${declaredBy.get(`exportd.${table}`)} folds.`,
      );
counts.push(`${declaredBy.size} tables of read models, each folded by one module`);
if (declaredBy.size === 0) problems.push('Rule 4: no read model was found.');

process.stdout.write(`${counts.join('\n')}\n`);
for (const problem of problems) process.stderr.write(`${problem}\n`);
process.exitCode = problems.length > 0 ? 1 : 0;
