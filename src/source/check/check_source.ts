import pg from 'pg';
import { type Model, models } from '../../domain/batch_export.ts';
import {
  type ContractColumn,
  keyColumnNames,
  type RelationRole,
  relationSettings,
  sourceContract,
} from '../contract.ts';
import { eventColumnTypes, eventsQuery } from '../events_query.ts';
import { statementSettings } from '../model_query.ts';
import { personsQuery } from '../persons_query.ts';
import { columnTypesOf, type Relations, type RelationSettings, relationsOf } from '../relations.ts';
import { describeStrayRows, findStrayRows } from '../stray_rows.ts';
import { allRows } from '../row_selection.ts';
import type { RowRange } from '../source.ts';
import type { SourceConnections } from '../source_connection.ts';
import {
  checkAccessPaths,
  checkChangingKeys,
  checkRelationRights,
  checkRole,
  checkRowOrigins,
  type ColumnProblem,
  findColumnProblems,
  forbiddenSchema,
  quotedName,
  readSourceRole,
  type SourceRole,
  warnOfColumns,
} from './check_columns.ts';
import { type DraftChoice, draftView, missingRelation, replaceMissingEvents } from './draft_view.ts';
import {
  catalogReader,
  type CheckedRelation,
  type DraftView,
  findColumn,
  findingOf,
  type ReadCatalog,
  readRelationFacts,
  type RelationFacts,
  safeMessage,
  type SourceFinding,
  type SourceReport,
} from './report.ts';
import { readRowOrigins } from '../row_origins.ts';

/** How many rows are read, in the order in which PostgreSQL finds them. */
const sampledRows = 10_000;
const slowMessage = `Reading ${sampledRows.toLocaleString('en')} rows exceeded the timeout of the check, so that their values were not checked. Exports page in the order of an index instead.`;
const statementCancelled = '57014';

/** What some rows of a relation show that the catalog does not. */
interface RowSample {
  readonly findings: readonly SourceFinding[];
  /** A project with rows; 1 if there are none. */
  readonly team_id: number;
}

/** Reads some rows as exports do: values that cannot be converted, and nulls where the catalog does not exclude them. */
async function sampleRows(
  read: ReadCatalog,
  role: RelationRole,
  facts: RelationFacts,
  problems: readonly ColumnProblem[],
): Promise<RowSample> {
  const columns = sourceContract[role].columns.filter(
    (column) => findColumn(facts, column.name) && !problems.some((problem) => problem.column === column),
  );
  const subject = facts.name;
  try {
    const found = await readNulls(read, facts, columns);
    return { team_id: found.team ?? 1, findings: columns.flatMap((column) => nullFinding(column, found)) };
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    if (error.code === statementCancelled)
      return { team_id: 1, findings: [findingOf('warning', subject, null, slowMessage)] };
    const findings: SourceFinding[] = [];
    for (const column of columns) {
      const failure = await failureOf(() => readNulls(read, facts, [column]));
      if (failure) findings.push(failedFinding(column, failure));
    }
    return { team_id: 1, findings: findings.length > 0 ? findings : [failedFinding(null, error)] };
  }

  function nullFinding(column: ContractColumn, found: SampledNulls): SourceFinding[] {
    const { name, nullable } = column;
    if (nullable || found.nulls[name] !== true) return [];
    const isKey = keyColumnNames.has(name);
    const consequence = isKey
      ? 'They are never exported, or fail their run: fill it in, or exclude them with a view.'
      : 'They are exported with null, and queries expect a value.';
    const message = `Column ${name} is null in some rows. ${consequence}`;
    return [findingOf(isKey ? 'error' : 'warning', subject, name, message)];
  }

  function failedFinding(column: ContractColumn | null, error: pg.DatabaseError): SourceFinding {
    const what = column === null ? 'A row' : `A value of column ${column.name}`;
    const message = `${what} cannot be read as ${column?.type ?? 'exports do'}: ${safeMessage(error)}. Correct it, or exclude its row with a view.`;
    return findingOf('error', subject, column?.name ?? null, message);
  }
}

interface SampledNulls {
  readonly team: number | null;
  readonly nulls: Readonly<Record<string, boolean | null>>;
}

async function readNulls(
  read: ReadCatalog,
  { name }: RelationFacts,
  columns: readonly ContractColumn[],
): Promise<SampledNulls> {
  const names = columns.map((column) => quotedName(column.name));
  const nulls = columns.map((column) => {
    const quoted = quotedName(column.name);
    // As exports read it, so that a value that cannot be converted is found.
    return `'${column.name}', bool_or((${column.uses(`r.${quoted}`)[0] ?? quoted}) is null)`;
  });
  const team = columns.some((column) => column.name === 'team_id') ? 'min(r.team_id)::int' : 'null::int';
  const [row] = await read<SampledNulls>(
    `select ${team} as team, json_build_object(${nulls.join(', ')}) as nulls
     from (select ${names.map((column) => `source.${column}`).join(', ')} from ${name} source limit ${sampledRows}) r`,
  );
  return row ?? { team: null, nulls: {} };
}

async function failureOf(work: () => Promise<unknown>): Promise<pg.DatabaseError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return error;
    throw error;
  }
}

export type { CheckedRelation, DraftView, SourceFinding, SourceReport } from './report.ts';

interface CheckSourceOptions extends DraftChoice {
  /** The model to be exported. By default events, and persons if their relations exist. */
  readonly model?: Model | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The result of checking one relation. */
interface RelationCheck {
  readonly checked: CheckedRelation;
  readonly findings: readonly SourceFinding[];
  readonly view: DraftView | null;
  /** Other relations that may have the events, if this one does not exist. */
  readonly tables: readonly string[];
  /** Null if the relation cannot be read. */
  readonly facts: RelationFacts | null;
  /** A project that has rows. */
  readonly team_id: number;
}

/**
 * Compares the relations of the source with what exports need: columns, types, nulls, rights, indexes and the plan of the
 * statements. It changes nothing, and reads the first 10,000 rows of each relation.
 * @throws InvalidRelationName, and errors of the connection
 */
export async function checkSource(
  connections: SourceConnections,
  settings: RelationSettings,
  { model, signal, ...draft }: CheckSourceOptions = {},
): Promise<SourceReport> {
  const relations = relationsOf(settings);
  const read = catalogReader(connections, signal);
  const role = await readSourceRole(read);
  const events = model === 'persons' ? null : await checkRelation(read, 'events', relations, role, draft);
  const needsPersons = model === 'persons';
  const readsPersons = needsPersons || lacksPersonProperties(events);
  const persons =
    model === 'events' && !readsPersons
      ? []
      : [
          await checkRelation(read, 'persons', relations, role, draft),
          await checkRelation(read, 'person_distinct_ids', relations, role, draft),
        ];
  const isAbsent = persons.every(({ checked }) => checked.kind === null);
  // Persons are optional: an installation may export events alone, if they carry the properties of persons.
  const counted = isAbsent && !needsPersons ? [] : persons;
  const checks = [...(events ? [events] : []), ...counted];
  const findings = [...checkRole(role), ...checks.flatMap((check) => check.findings)];
  if (isAbsent && lacksPersonProperties(events)) findings.push(missingPersons(events));
  findings.push(
    ...checkRowOrigins(
      await connections.read({}, signal, ({ connection }) => readRowOrigins(connection, relations)),
    ),
  );
  const hasErrors = findings.some(({ level }) => level === 'error');
  if (!hasErrors)
    findings.push(
      ...(await checkStatements(connections, relations, checks, signal)),
      ...(await checkStrayRows(connections, relations, checks, signal)),
    );
  return {
    ok: findings.every(({ level }) => level !== 'error'),
    relations: [...(events ? [events] : []), ...persons].map(({ checked }) => checked),
    findings,
    tables: events?.tables ?? [],
    views: checks.flatMap(({ view, facts }) => {
      if (view !== null) return [view];
      return isAbsent && facts !== null && lacksPersonProperties(events)
        ? [draftView('events', facts, [], { ...draft, reader: role.role })]
        : [];
    }),
  };
}

type ReadableCheck = RelationCheck & { readonly facts: RelationFacts };

function lacksPersonProperties(events: RelationCheck | null): events is ReadableCheck {
  const facts = events?.facts ?? null;
  return facts !== null && !findColumn(facts, 'person_properties');
}

const missingPersons = ({ facts }: ReadableCheck): SourceFinding =>
  findingOf(
    'error',
    facts.name,
    'person_properties',
    'Without the column person_properties, exports of events read the relations of persons, which do not exist. Add the column, for example null::jsonb as person_properties in a view.',
  );

async function checkRelation(
  read: ReadCatalog,
  role: RelationRole,
  relations: Relations,
  reader: SourceRole,
  draft: DraftChoice,
): Promise<RelationCheck> {
  const relation = relations[role];
  const setting = relationSettings[role];
  const facts = await readRelationFacts(read, relation);
  if (typeof facts === 'string') {
    const checked = { role, setting, relation, kind: null };
    const absent = { checked, view: null, facts: null, team_id: 1, tables: [] };
    if (facts === 'forbidden') return { ...absent, findings: [forbiddenSchema(relation, reader)] };
    const found =
      role === 'events'
        ? await replaceMissingEvents(read, relation, reader, draft)
        : { tables: [], view: null };
    return { ...absent, ...found, findings: [missingRelation(relation, setting, found.tables.length > 0)] };
  }
  const checked = { role, setting, relation: facts.name, kind: facts.kind };
  const rights = checkRelationRights(role, facts, reader);
  const mayRead = rights.every(({ level }) => level !== 'error');
  const problems = await findColumnProblems(read, role, facts);
  const sample = mayRead ? await sampleRows(read, role, facts, problems) : { findings: [], team_id: 1 };
  const isReadable = mayRead && problems.length === 0;
  const changing = isReadable ? await checkChangingKeys(read, role, facts) : [];
  const indexes = isReadable ? await checkAccessPaths(read, role, facts, sample.team_id) : [];
  return {
    checked,
    facts,
    team_id: sample.team_id,
    view: problems.length === 0 ? null : draftView(role, facts, problems, { ...draft, reader: reader.role }),
    tables: [],
    findings: [
      ...rights,
      ...problems.map(({ column, message }) => findingOf('error', facts.name, column.name, message)),
      ...warnOfColumns(role, facts, problems, reader),
      ...sample.findings,
      ...changing,
      ...indexes,
    ],
  };
}

/** Counts rows that no interval contains. An index finds them: without one, that is a finding already. */
async function checkStrayRows(
  connections: SourceConnections,
  relations: Relations,
  checks: readonly RelationCheck[],
  signal: AbortSignal | undefined,
): Promise<SourceFinding[]> {
  const findings: SourceFinding[] = [];
  for (const { checked, team_id } of checks) {
    if (checked.role === 'person_distinct_ids') continue;
    const range = { model: checked.role, team_id };
    const found = await connections
      .read({}, signal, (transaction) => findStrayRows(transaction, relations, range))
      .catch((error: unknown) => {
        if (error instanceof pg.DatabaseError && error.code === statementCancelled) return [];
        throw error;
      });
    for (const stray of found)
      for (const { areLost, message } of describeStrayRows(stray))
        findings.push(
          findingOf(
            areLost ? 'error' : 'warning',
            stray.relation,
            stray.column,
            `Project ${team_id} has ${message}`,
          ),
        );
  }
  return findings;
}

/** Has PostgreSQL plan the statements that exports send. They show what no single relation does. */
async function checkStatements(
  connections: SourceConnections,
  relations: Relations,
  checks: readonly RelationCheck[],
  signal: AbortSignal | undefined,
): Promise<SourceFinding[]> {
  const roles = checks.map(({ checked }) => checked.role);
  const findings: SourceFinding[] = [];
  for (const model of models.filter((known) => roles.includes(known)))
    try {
      await connections.read({}, signal, async ({ connection, set }) => {
        const range: RowRange = {
          model,
          team_id: checks[0]?.team_id ?? 1,
          interval: { start: '2026-01-01T00:00:00Z', end: '2026-01-01T01:00:00Z' },
          selection: allRows,
        };
        const query =
          model === 'events'
            ? eventsQuery(relations, await eventColumnTypes(connection, relations), range)
            : personsQuery(relations, await columnTypesOf(connection, relations.persons), range);
        await set(statementSettings(query, range));
        await connection.query(`explain ${query.page(1, { after: false, until: false })}`);
      });
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      const subject =
        checks.find(({ checked }) => checked.role === model)?.checked.relation ?? relations[model];
      const message = `PostgreSQL rejects the statement that exports ${model}: ${safeMessage(error)}.`;
      findings.push(findingOf('error', subject, null, message));
    }
  return findings;
}
