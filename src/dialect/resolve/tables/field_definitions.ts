import type { PropertyTypes } from '../../schema.ts';
import { joinSql, sql, type Sql } from '../../sql.ts';
import type { ScalarKind } from '../../types.ts';
import { column, type RelationField } from '../relation.ts';
import type { TeamRelation } from '../team_relation.ts';

/** A column of a relation with its name in queries. */
interface FieldDefinition {
  readonly column: string;
  readonly kind: ScalarKind;
  readonly nullable?: boolean;
  /** Not part of `*`. */
  readonly hidden?: boolean;
}

export type FieldDefinitions = Readonly<Record<string, FieldDefinition>>;

/** The field with a name, read from its relation. */
export function fieldOf(
  relation: Pick<TeamRelation, 'column'>,
  definitions: FieldDefinitions,
  name: string,
  properties?: PropertyTypes,
): RelationField | undefined {
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  if (definition === undefined) return undefined;
  const { kind, nullable = false } = definition;
  return column(
    relation.column(definition.column),
    { kind, nullable },
    kind === 'json' ? properties : undefined,
  );
}

export const starFieldsOf = (definitions: FieldDefinitions): readonly string[] =>
  Object.entries(definitions)
    .filter(([, { hidden }]) => hidden !== true)
    .map(([name]) => name);

/** Relations that are joined to another one on first use, each once. */
export class LazyJoins {
  readonly #joins = new Map<string, { readonly from: () => Sql; readonly condition: Sql }>();
  readonly #made = new Map<string, unknown>();

  /** The relation of a key, created and joined on the first call. */
  getOrJoin<Joined extends { readonly from: () => Sql }>(
    key: string,
    make: () => { readonly relation: Joined; readonly condition: Sql },
  ): Joined {
    const existing = this.#made.get(key);
    if (existing !== undefined) return existing as Joined;
    const { relation, condition } = make();
    this.#made.set(key, relation);
    this.#joins.set(key, { from: () => relation.from(), condition });
    return relation;
  }

  /** A relation with its joins. */
  joinTo(main: Sql): Sql {
    if (this.#joins.size === 0) return main;
    const joins = [...this.#joins.values()].map(
      ({ from, condition }) => sql` left join ${from()} on ${condition}`,
    );
    return sql`(${main}${joinSql(joins, '')})`;
  }
}

/** Fields of events that are columns in other installations and properties here. */
export const propertyColumns: ReadonlySet<string> = new Set([
  ...['$session_id', '$window_id'],
  ...['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'],
]);

/** The built-in tables. */
export const builtInTables = [
  'events',
  'persons',
  'person_distinct_ids',
  'sessions',
  'session_replay_events',
  'groups',
] as const;

/** Tables that exist in ClickHouse installations but not here, or not in every source, with what to use instead. */
export const unsupportedTables: Readonly<Record<string, string>> = {
  groups: 'The source has no relation public.groups; group keys are in events, for example $group_0.',
  session_replay_events: 'The source has no relation public.session_replay_events.',
  cohort_people: 'Cohorts are not stored; put their conditions in WHERE.',
  static_cohort_people: 'Cohorts are not stored; put their conditions in WHERE.',
  raw_persons: 'Use persons.',
  raw_sessions: 'Use sessions.',
  raw_session_replay_events: 'Use session_replay_events.',
  log_entries: 'Logs are not stored.',
  query_log: 'Queries are not stored.',
  heatmaps: 'Heatmaps are not stored.',
};

/** Whether a name is reserved for the dialect, so that no warehouse table may use it. */
export const isDialectTable = (name: string): boolean =>
  builtInTables.some((own) => own === name) || Object.hasOwn(unsupportedTables, name);
