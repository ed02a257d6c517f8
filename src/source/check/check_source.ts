import pg from 'pg';
import type { Model } from '../../domain/batch_export.ts';
import { relationSettings, type RelationRole } from '../contract.ts';
import { eventColumnTypes, eventsQuery } from '../events_query.ts';
import { statementSettings } from '../pages.ts';
import { personsQuery } from '../persons_query.ts';
import { columnTypesOf, relationsOf, type Relations, type RelationSettings } from '../relations.ts';
import { allRows } from '../row_selection.ts';
import type { RowRange } from '../source.ts';
import type { SourceConnections } from '../source_connection.ts';
import { catalogReader } from './catalog_reader.ts';
import { checkAccessPaths } from './check_access_paths.ts';
import { findColumnProblems, warnOfColumns } from './check_columns.ts';
import {
  checkRelationRights,
  checkRole,
  forbiddenSchema,
  readSourceRole,
  type SourceRole,
} from './check_rights.ts';
import { draftView } from './draft_view.ts';
import { missingRelation, replaceMissingEvents, type DraftChoice } from './missing_events.ts';
import { findColumn, readRelationFacts, type RelationFacts } from './relation_facts.ts';
import type { CheckedRelation, DraftView, ReadCatalog, SourceFinding, SourceReport } from './report.ts';
import { safeMessage } from './safe_message.ts';
import { sampleRows } from './sample_rows.ts';

export type { CheckedRelation, DraftView, SourceFinding, SourceReport } from './report.ts';

export interface CheckSourceOptions extends DraftChoice {
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
  const hasErrors = findings.some(({ level }) => level === 'error');
  if (!hasErrors) findings.push(...(await checkStatements(connections, relations, checks, signal)));
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

const missingPersons = ({ facts }: ReadableCheck): SourceFinding => ({
  level: 'error',
  subject: facts.name,
  column: 'person_properties',
  message:
    'Without the column person_properties, exports of events read the relations of persons, which do not exist. Add the column, for example null::jsonb as person_properties in a view.',
  sql: null,
});

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
  const indexes = isReadable ? await checkAccessPaths(read, role, facts, sample.team_id) : [];
  return {
    checked,
    facts,
    team_id: sample.team_id,
    view: problems.length === 0 ? null : draftView(role, facts, problems, { ...draft, reader: reader.role }),
    tables: [],
    findings: [
      ...rights,
      ...problems.map(({ column, message }): SourceFinding => ({
        level: 'error',
        subject: facts.name,
        column: column.name,
        message,
        sql: null,
      })),
      ...warnOfColumns(role, facts, problems),
      ...sample.findings,
      ...indexes,
    ],
  };
}

/** Has PostgreSQL plan the statements that exports send. They show what no single relation does. */
async function checkStatements(
  connections: SourceConnections,
  relations: Relations,
  checks: readonly RelationCheck[],
  signal: AbortSignal | undefined,
): Promise<SourceFinding[]> {
  const roles = checks.map(({ checked }) => checked.role);
  const models: Model[] = [
    ...(roles.includes('events') ? (['events'] as const) : []),
    ...(roles.includes('persons') ? (['persons'] as const) : []),
  ];
  const findings: SourceFinding[] = [];
  for (const model of models)
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
      findings.push({
        level: 'error',
        subject: checks.find(({ checked }) => checked.role === model)?.checked.relation ?? relations[model],
        column: null,
        message: `PostgreSQL rejects the statement that exports ${model}: ${safeMessage(error)}.`,
        sql: null,
      });
    }
  return findings;
}
