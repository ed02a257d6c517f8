import type { SourceRelation } from '../../schema.ts';
import { bind, commaList, identifier, joinSql, type Sql, sql } from '../../sql.ts';
import { type PropertyScope, type ScalarKind, scalarType } from '../../types.ts';
import { column, type Relation, type RelationField, type RelationFields, TeamRelation } from '../relation.ts';
import type { Statement } from '../statement.ts';

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
  scope?: PropertyScope,
): RelationField | undefined {
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  if (definition === undefined) return undefined;
  const { kind, nullable = false } = definition;
  return column(relation.column(definition.column), { kind, nullable }, kind === 'json' ? scope : undefined);
}

export const starFieldsOf = (definitions: FieldDefinitions): readonly string[] =>
  Object.entries(definitions)
    .filter(([, { hidden }]) => hidden !== true)
    .map(([name]) => name);

/** Relations that are joined to another one on first use, each once. */
export class LazyJoins {
  readonly #joins = new Map<string, () => Sql>();
  readonly #made = new Map<string, unknown>();

  /**
   * The relation of a key, created and joined on the first call. A left join keeps all rows, an inner one those with a
   * match.
   */
  getOrJoin<Joined extends { readonly from: () => Sql }>(
    key: string,
    make: () => { readonly relation: Joined; readonly condition: Sql },
    kind: 'left' | 'inner' = 'left',
  ): Joined {
    const existing = this.#made.get(key);
    if (existing !== undefined) return existing as Joined;
    const { relation, condition } = make();
    this.#made.set(key, relation);
    const words = kind === 'left' ? sql` left join ` : sql` join `;
    this.#joins.set(key, () => sql`${words}${relation.from()} on ${condition}`);
    return relation;
  }

  get isEmpty(): boolean {
    return this.#joins.size === 0;
  }

  /** A relation with its joins. */
  joinTo(main: Sql): Sql {
    if (this.#joins.size === 0) return main;
    const joins = [...this.#joins.values()].map((join) => join());
    return sql`(${main}${joinSql(joins, '')})`;
  }
}

/** Fields of events that are columns in other installations and properties here; '' where an event has none. */
export const propertyColumns: ReadonlySet<string> = new Set([
  '$session_id',
  '$window_id',
  '$group_0',
  '$group_1',
  '$group_2',
  '$group_3',
  '$group_4',
]);

/** The built-in tables. */
export const builtInTables = [
  'events',
  'persons',
  'person_distinct_ids',
  'sessions',
  'session_replay_events',
  'groups',
  'cohort_people',
  'raw_person_distinct_ids',
  'raw_session_replay_events',
  'system.cohorts',
  'system.information_schema.tables',
  'system.information_schema.columns',
] as const;

/** Tables that exist in ClickHouse installations but not here, or not in every source, with what to use instead. */
export const unsupportedTables: Readonly<Record<string, string>> = {
  groups: 'The source has no relation public.groups; group keys are in events, for example $group_0.',
  session_replay_events: 'The source has no relation public.session_replay_events.',
  cohort_people:
    'The source has no relation public.cohort_people; put the conditions of the cohort in WHERE.',
  static_cohort_people:
    'The source has no relation public.cohort_people; put the conditions of the cohort in WHERE.',
  raw_persons: 'Use persons.',
  raw_sessions: 'Use sessions.',
  raw_session_replay_events: 'The source has no relation public.session_replay_events.',
  log_entries: 'Logs are not stored.',
  query_log: 'Queries are not stored.',
  heatmaps: 'Heatmaps are not stored.',
  'system.cohorts': 'The source has no relation public.cohort_people.',
  'system.information_schema.relationships':
    'Nested rows, such as person.properties, are in system.information_schema.columns.',
  'information_schema.tables': 'Use system.information_schema.tables.',
  'information_schema.columns': 'Use system.information_schema.columns.',
};

/** Whether a name is reserved for the dialect, so that the name of no warehouse table may start with it. */
export const isDialectTable = (name: string): boolean =>
  [...builtInTables, ...Object.keys(unsupportedTables)].some((own) => own.split('.')[0] === name);

const personFields: FieldDefinitions = {
  id: { column: 'id', kind: 'uuid' },
  created_at: { column: 'created_at', kind: 'datetime' },
  properties: { column: 'properties', kind: 'json' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
  version: { column: 'version', kind: 'integer', hidden: true },
};

/** The newest version of each person of a project, without deleted persons. */
export class PersonsRelation implements Relation {
  readonly name: string | null;
  readonly #statement: Statement;
  readonly #relation: TeamRelation;
  readonly #joins = new LazyJoins();

  /** @param sample the condition of SAMPLE */
  constructor(statement: Statement, name: string | null, sample: Sql | null = null) {
    this.name = name;
    this.#statement = statement;
    this.#relation = new TeamRelation(statement, statement.project.schema.persons, name ?? 'persons', {
      teamColumn: 'team_id',
      conditions: [sample],
      versioned: { key: 'id' },
    });
  }

  readonly field: Relation['field'] = (name) => {
    if (name === 'pdi') return { kind: 'nested', fields: this.#mappings };
    if (name === 'is_identified') return this.#isIdentified();
    return fieldOf(this.#relation, personFields, name, 'person');
  };

  readonly names = (): readonly string[] => [...Object.keys(personFields), 'is_identified', 'pdi'];
  readonly star = (): readonly string[] => starFieldsOf(personFields);
  readonly from = (): Sql => this.#joins.joinTo(this.#relation.from());

  get id(): Sql {
    return this.#relation.column('id');
  }

  /** One row for each distinct id of a person; a person without any has none, as in PostHog. */
  readonly #mappings: RelationFields = {
    names: () => starFieldsOf(distinctIdFields),
    star: () => starFieldsOf(distinctIdFields),
    field: (name) => {
      const mappings = (): TeamRelation =>
        this.#joins.getOrJoin(
          'pdi',
          () => {
            const relation = personMappings(this.#statement, 'pdi');
            return { relation, condition: sql`${relation.column('person_id')} = ${this.id}` };
          },
          'inner',
        );
      return this.#mappings.names().includes(name) ? fieldOf(mappings(), distinctIdFields, name) : undefined;
    },
  };

  #isIdentified(): RelationField {
    if (this.#statement.project.schema.persons.columns.get('is_identified') === 'boolean')
      return column(this.#relation.column('is_identified'), scalarType('boolean', true));
    const { id } = this;
    const identified = this.#joins.getOrJoin('identified', () => {
      const relation = identifiedPersons(this.#statement);
      return { relation, condition: sql`${relation.id} = ${id}` };
    });
    return column(
      sql`(case when ${id} is not null then ${identified.id} is not null end)`,
      scalarType('boolean'),
    );
  }
}

const text = (value: string): Sql => bind(value, 'text');

/**
 * The persons that PostHog would have marked as identified: those with an event that names another distinct id of theirs
 * (person-merge-service.ts).
 */
function identifiedPersons(statement: Statement): { readonly id: Sql; readonly from: () => Sql } {
  const names = (property: string): Sql =>
    sql`("properties" ->> ${text(property)}) not in ('', "distinct_id")`;
  const identify = text('$identify');
  const events = new MergedPersonEvents(
    statement,
    new TeamRelation(statement, statement.project.schema.events, 'identify', {
      teamColumn: 'team_id',
      conditions: [
        sql`"event" in (${identify}, ${text('$create_alias')}, ${text('$merge_dangerously')})`,
        sql`(case "event" when ${identify} then ${names('$anon_distinct_id')} else ${names('alias')} end)`,
      ],
    }),
  );
  const identified = statement.uniqueName('identified');
  const person = events.column('person_id');
  return {
    id: sql`${identified}.id`,
    from: () => sql`(select distinct ${person} as id from ${events.from()}) as ${identified}`,
  };
}

/** The nested row `person` of a row with a person id. Fields other than the id are read from persons. */
export function nestedPerson(id: Sql, persons: () => PersonsRelation): RelationFields {
  const star = () => starFieldsOf(personFields);
  const person: RelationFields = {
    // A deleted person has only an id.
    field: (name) => {
      if (name === 'id') return column(id, { kind: 'uuid', nullable: true });
      if (name === 'pdi') return undefined;
      const field = persons().field(name);
      return field?.kind === 'column' ? { ...field, type: { ...field.type, nullable: true } } : field;
    },
    names: () => [...star(), 'is_identified'],
    star,
  };
  return person;
}

/**
 * The current person of each distinct id. Of several mappings the one with the newest version applies. A deleted mapping
 * maps to no person.
 */
export const personMappings = (statement: Statement, name: string, sample: Sql | null = null): TeamRelation =>
  new TeamRelation(statement, statement.project.schema.personDistinctIds, name, {
    teamColumn: 'team_id',
    conditions: [sample],
    versioned: { key: 'distinct_id' },
  });

/**
 * The events of a project with their merged persons: the person that the distinct id is mapped to now, else the person that
 * the event names. Nothing else decides who did an event.
 */
export class MergedPersonEvents {
  readonly alias: Sql;
  readonly #statement: Statement;
  readonly #events: TeamRelation;
  readonly #columns = new Map<string, Sql>();
  #mappings: TeamRelation | null = null;
  #page: { readonly name: Sql; readonly clauses: Sql } | null = null;

  constructor(statement: Statement, events: TeamRelation) {
    this.#statement = statement;
    this.#events = events;
    this.alias = events.alias;
  }

  /** Adds a column to the selected ones; `person_id` is the id of the merged person. */
  column(name: string): Sql {
    if (name === 'person_id') this.#mappings ??= personMappings(this.#statement, 'mapping');
    return this.#select(name, () => this.#events.column(name));
  }

  /** Adds a property of the event to the selected columns; '' where it has none. */
  property(name: string): Sql {
    return this.#select(name, () => this.#events.property(name));
  }

  #select(name: string, read: () => Sql): Sql {
    const selected = this.#columns.get(name) ?? read();
    this.#columns.set(name, selected);
    return selected;
  }

  /** The same fragment that `column` returns, without selecting the column. */
  reference(name: string): Sql {
    return this.#events.reference(name);
  }

  /** The column with the merged person, if it is selected. */
  get selectedPerson(): Sql | null {
    return this.#columns.get('person_id') ?? null;
  }

  /** The item in FROM, with its alias. */
  from(): Sql {
    const mappings = this.#mappings;
    if (mappings === null) return this.#rows();
    const distinctId = this.#events.column('distinct_id');
    const isMapped = sql`${mappings.column('distinct_id')} = ${distinctId}`;
    const current = mappings.column('person_id');
    // Not coalesce(): PostgreSQL takes it for a function that might reveal values, and so no policy would let a join use
    // the index of persons.
    const merged = (stored: Sql): Sql => sql`case when ${current} is null then ${stored} else ${current} end`;
    const selected = [...this.#columns].map(([name, stored]) =>
      name === 'person_id' ? sql`${merged(stored)} as ${identifier(name)}` : stored,
    );
    return sql`(select ${commaList(selected)} from ${this.#rows()} left join ${mappings.from()} on ${isMapped}) as ${this.alias}`;
  }

  /** The stored events, or the page of them, with their alias. */
  #rows(): Sql {
    const events = this.#events.from();
    if (this.#page === null) return events;
    const { name, clauses } = this.#page;
    const query = sql`select ${this.alias}.* from ${events}${clauses}`;
    this.#statement.commonTables.push({ name, query });
    return sql`${name} as ${this.alias}`;
  }

  /** Whether nothing is joined to the stored events. */
  get isStored(): boolean {
    return this.#mappings === null;
  }

  /**
   * Reads only the events that these clauses after FROM leave, before others are joined to them.
   * @returns the name of the table with them
   */
  limitTo(clauses: Sql): Sql {
    const name = this.#statement.uniqueName('page');
    this.#page = { name, clauses };
    return name;
  }

  /**
   * Restricts the events to those that can be of one of these persons. No index has merged persons, but the indexes by
   * distinct id and by stored person find these events.
   * @param ids an array
   * @param orCarryPerson whether to keep all events with person properties of their own, too
   */
  restrictToPersons(ids: Sql, orCarryPerson = false): void {
    const mappings = personMappings(this.#statement, 'mapping');
    const distinctId = mappings.column('distinct_id');
    const isMapped = sql`${mappings.column('person_id')} = any(${ids})`;
    const mapped = sql`array(select ${distinctId} from ${mappings.from()} where ${isMapped})`;
    const more = orCarryPerson ? sql` or "person_properties" is not null` : sql``;
    this.#events.restrict(sql`("distinct_id" = any(${mapped}) or "person_id" = any(${ids})${more})`);
  }
}

const distinctIdFields: FieldDefinitions = {
  distinct_id: { column: 'distinct_id', kind: 'string' },
  person_id: { column: 'person_id', kind: 'uuid' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
  version: { column: 'version', kind: 'integer', hidden: true },
};

/** All mappings of distinct ids, also deleted and replaced ones. */
export const rawDistinctIdFields: FieldDefinitions = {
  distinct_id: { column: 'distinct_id', kind: 'string' },
  person_id: { column: 'person_id', kind: 'uuid' },
  is_deleted: { column: 'is_deleted', kind: 'boolean' },
  version: { column: 'version', kind: 'integer' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
};

/** The persons of each static cohort. */
export const cohortFields: FieldDefinitions = {
  cohort_id: { column: 'cohort_id', kind: 'integer' },
  person_id: { column: 'person_id', kind: 'uuid' },
  team_id: { column: 'team_id', kind: 'integer', hidden: true },
};

/** The rows of a relation as they are stored. */
export class StoredRelation implements Relation {
  readonly name: string | null;
  readonly #fields: FieldDefinitions;
  readonly #relation: TeamRelation;

  constructor(statement: Statement, source: SourceRelation, name: string, fields: FieldDefinitions) {
    this.name = name;
    this.#fields = fields;
    this.#relation = new TeamRelation(statement, source, name, { teamColumn: 'team_id' });
  }

  readonly field: Relation['field'] = (name) => fieldOf(this.#relation, this.#fields, name);
  readonly names = (): readonly string[] => Object.keys(this.#fields);
  readonly star = (): readonly string[] => starFieldsOf(this.#fields);
  readonly from = (): Sql => this.#relation.from();
}

/** The current person of each distinct id. */
export class PersonDistinctIdsRelation implements Relation {
  readonly name: string | null;
  readonly #statement: Statement;
  readonly #relation: TeamRelation;
  readonly #joins = new LazyJoins();

  /** @param sample the condition of SAMPLE */
  constructor(statement: Statement, name: string | null, sample: Sql | null = null) {
    this.name = name;
    this.#statement = statement;
    this.#relation = personMappings(statement, name ?? 'person_distinct_ids', sample);
  }

  readonly field: Relation['field'] = (name) => {
    if (name !== 'person') return fieldOf(this.#relation, distinctIdFields, name);
    const id = this.#relation.column('person_id');
    const persons = (): PersonsRelation =>
      this.#joins.getOrJoin('person', () => {
        const relation = new PersonsRelation(this.#statement, 'person');
        return { relation, condition: sql`${relation.id} = ${id}` };
      });
    return { kind: 'nested', fields: nestedPerson(id, persons) };
  };

  readonly names = (): readonly string[] => [...Object.keys(distinctIdFields), 'person'];
  readonly star = (): readonly string[] => starFieldsOf(distinctIdFields);
  readonly from = (): Sql => this.#joins.joinTo(this.#relation.from());

  get distinctId(): Sql {
    return this.#relation.column('distinct_id');
  }
}
