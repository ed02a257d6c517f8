import { postgresType } from '@exportd/dialect/compile/expressions/coerce';
import {
  column,
  type Column,
  type Relation,
  type RelationField,
  type RelationFields,
  readableJson,
  TeamRelation,
} from '@exportd/dialect/resolve/relation';
import type { Statement } from '@exportd/dialect/resolve/statement';
import { propertyColumns, personMappings } from '@exportd/dialect/resolve/tables/persons';
import { columnIdentityOf, everyOperand, type Value } from '@exportd/dialect/resolve/value';
import { bind, rawSql, sql, type Sql } from '@exportd/dialect/sql';
import { type ScalarKind, scalarType } from '@exportd/dialect/types';
import { jsonColumn } from '../model_query.ts';

/** A column of a model that queries can use. */
interface RowColumn {
  readonly kind: ScalarKind;
  readonly nullable?: boolean;
  /** Not included in `*`. */
  readonly hidden?: boolean;
}

/** How a statement accesses the columns of the rows that it reads. */
export interface ColumnAccess {
  /** The SQL expression of a column. */
  readonly sql: (column: string) => string;
  /** The PostgreSQL type of a JSON column. */
  readonly jsonType: (column: string) => string | undefined;
}

/** The row of an export, from which a query selects columns. */
export interface ModelRow extends Relation {
  /** The model's column that an expression consists of: `properties`, but not `properties.plan`. */
  readonly wholeColumn: (value: Value) => { readonly name: string; readonly sql: Sql } | undefined;
  /** Whether a value reads the current state of the person. */
  readonly readsPerson: (value: Value) => boolean;
  /** The joins of the fields that were requested. Call it after resolving all names. */
  readonly joins: () => readonly Sql[];
  /** The name under which `joins` provide the current person; null if no field reads it. */
  readonly personAlias: () => Sql | null;
}

/** The columns of a row. Reading a JSON column never fails, whatever its content. */
class RowColumns {
  readonly #columns: ReadonlyMap<string, RowColumn>;
  readonly #access: ColumnAccess;

  constructor(columns: ReadonlyMap<string, RowColumn>, access: ColumnAccess) {
    this.#columns = columns;
    this.#access = access;
  }

  column(name: string): Column | undefined {
    const known = this.#columns.get(name);
    if (known === undefined) return undefined;
    const type = scalarType(known.kind, known.nullable);
    const read =
      known.kind === 'json'
        ? this.#readable(name)
        : sql`${rawSql(this.#access.sql(name))}::${postgresType(type)}`;
    return { ...column(read, type), identity: name };
  }

  get names(): readonly string[] {
    return [...this.#columns.keys()];
  }

  get selectable(): readonly string[] {
    return this.names.filter((name) => this.#columns.get(name)?.hidden !== true);
  }

  readonly wholeColumn: ModelRow['wholeColumn'] = (value) => {
    const name = columnIdentityOf(value);
    if (name === undefined || !this.#columns.has(name)) return undefined;
    const isJson = this.#columns.get(name)?.kind === 'json';
    const { sql: columnSql, jsonType } = this.#access;
    return { name, sql: isJson ? rawSql(jsonColumn(columnSql(name), jsonType(name))) : value.sql };
  };

  #readable(name: string): Sql {
    const [expression, type] = [this.#access.sql(name), this.#access.jsonType(name)];
    if (type === 'jsonb') return rawSql(expression);
    return rawSql(readableJson(type === 'json' ? expression : `(${expression})::json`));
  }
}

/** The current person of a row. A lateral join finds at most one person, so rows are neither dropped nor duplicated. */
class RowPerson {
  readonly #person: TeamRelation;
  readonly #alias: Sql;
  readonly #id: Sql;
  readonly #selected = new Map<string, Sql>();

  constructor(statement: Statement, id: Sql) {
    this.#person = personsOf(statement);
    this.#alias = statement.uniqueName('person_of_row');
    this.#id = id;
  }

  column(name: 'properties' | 'created_at'): Sql {
    this.#selected.set(name, this.#person.column(name));
    return sql`${this.#alias}.${rawSql(`"${name}"`)}`;
  }

  alias(): Sql | null {
    return this.#selected.size === 0 ? null : this.#alias;
  }

  joins(): readonly Sql[] {
    if (this.#selected.size === 0) return [];
    const id = this.#person.column('id');
    const [first, ...others] = this.#selected.values();
    const selected = others.reduce((list, one) => sql`${list}, ${one}`, first ?? sql``);
    return [
      sql` left join lateral (select ${selected} from ${this.#person.from()} where ${id} = ${this.#id} limit 1) as ${this.#alias} on true`,
    ];
  }
}

/**
 * The person of an event as queries have it: the one that its distinct id is mapped to now, else the one that the event
 * names. Subqueries instead of joins: they neither drop nor duplicate events, and are computed only where they are needed.
 */
class MergedPerson {
  readonly #statement: Statement;
  readonly id: Sql;

  /** @param event the columns of the event */
  constructor(statement: Statement, event: { readonly distinctId: Sql; readonly personId: Sql }) {
    this.#statement = statement;
    const mapping = personMappings(statement, 'mapping');
    const [id, distinctId] = [mapping.column('person_id'), mapping.column('distinct_id')];
    this.id = sql`coalesce((select ${id} from ${mapping.from()} where ${distinctId} = ${event.distinctId} limit 1), ${event.personId})`;
  }

  column(name: 'properties' | 'created_at'): Sql {
    const person = personsOf(this.#statement);
    const [id, read] = [person.column('id'), person.column(name)];
    return sql`(select ${read} from ${person.from()} where ${id} = ${this.id} limit 1)`;
  }
}

const personsOf = (statement: Statement): TeamRelation =>
  new TeamRelation(statement, statement.project.schema.persons, 'person', {
    teamColumn: 'team_id',
    conditions: [sql`not is_deleted`],
  });

/** Whether a value reads a column for whose identity a condition holds. */
const readsColumn = (value: Value, holds: (identity: string) => boolean): boolean =>
  !everyOperand(value, (operand) => {
    const identity = columnIdentityOf(operand);
    return identity === undefined || !holds(identity);
  });

/** A field that exists in queries and cannot be exported. */
const notExportable = (sentence: string): RelationField => ({
  kind: 'unsupported',
  summary: sentence,
  suggestion: null,
});

const eventColumns: ReadonlyMap<string, RowColumn> = new Map<string, RowColumn>([
  ['uuid', { kind: 'uuid' }],
  ['timestamp', { kind: 'datetime' }],
  ['_inserted_at', { kind: 'datetime' }],
  ['created_at', { kind: 'datetime', nullable: true }],
  ['event', { kind: 'string' }],
  ['properties', { kind: 'json' }],
  ['distinct_id', { kind: 'string' }],
  ['elements_chain', { kind: 'string' }],
  ['person_properties', { kind: 'json', nullable: true }],
  ['person_id', { kind: 'uuid', nullable: true }],
  ['team_id', { kind: 'integer', hidden: true }],
  ['inserted_at', { kind: 'datetime', hidden: true }],
]);

/** Identities of columns that read the current person. */
const personPrefix = 'person.';

const personColumn = (name: string, fragment: Sql, kind: ScalarKind): Column => ({
  ...column(fragment, scalarType(kind, true)),
  identity: `${personPrefix}${name}`,
});

/**
 * One row of an export of events: an event with its person. In the query of an export that is the person whom the event
 * names, so that columns and conditions agree with the column person_id of the files. In its filters it is the merged
 * person, as in queries.
 */
export function createEventRow(
  statement: Statement,
  name: string,
  access: ColumnAccess,
  whose: 'own' | 'merged' = 'own',
): ModelRow {
  const row = new RowColumns(eventColumns, access);
  const known = (column: string): Sql => row.column(column)?.sql ?? sql`null`;
  const { events, persons } = statement.project.schema;
  const joined = new RowPerson(statement, known('person_id'));
  const merged =
    whose === 'merged' && persons.columns.size > 0
      ? new MergedPerson(statement, { distinctId: known('distinct_id'), personId: known('person_id') })
      : null;
  const person = merged ?? joined;
  const personId = (): Column | undefined =>
    merged ? personColumn('id', merged.id, 'uuid') : row.column('person_id');

  /** The properties stored with the event, else the current ones of its person, as in queries. */
  const personProperties = (): Column => {
    const carried = events.columns.get('person_properties');
    if (whose === 'merged' && merged === null && carried !== undefined)
      return {
        ...column(known('person_properties'), scalarType('json', true)),
        identity: 'person_properties',
      };
    const current = person.column('properties');
    if (carried === undefined) return personColumn('properties', current, 'json');
    const own = known('person_properties');
    const either =
      carried === persons.columns.get('properties')
        ? sql`coalesce(${own}, ${current})`
        : sql`coalesce(${own}::jsonb, ${current}::jsonb)`;
    return personColumn('properties', either, 'json');
  };
  const personNames = () => ['id', 'properties', 'created_at'];
  const fields: RelationFields = {
    names: personNames,
    star: personNames,
    field: (requested) => {
      if (requested === 'id') return personId();
      if (requested === 'properties') return personProperties();
      if (requested === 'created_at') return personColumn(requested, person.column('created_at'), 'datetime');
      return undefined;
    },
  };
  const field = (requested: string): RelationField | undefined => {
    if (propertyColumns.has(requested))
      return {
        ...column(
          sql`coalesce(${known('properties')} ->> ${bind(requested, 'text')}, '')`,
          scalarType('string'),
        ),
        identity: `property ${requested}`,
      };
    if (requested === 'person' || requested === 'poe') return { kind: 'nested', fields: fields };
    if (requested === 'session')
      return notExportable(
        'The field session cannot be exported, because a session changes while its events arrive.',
      );
    if (requested === 'pdi') return notExportable('The field pdi cannot be exported. Use person instead.');
    if (/^group_[0-4]$/.test(requested))
      return notExportable(
        `The field ${requested} cannot be exported, because a group changes after its events. Its key is $${requested}.`,
      );
    return requested === 'person_id' ? personId() : row.column(requested);
  };
  return {
    name,
    field: field,
    names: () => [...row.names, ...propertyColumns, 'person'],
    star: () => row.selectable,
    from: () => sql``,
    wholeColumn: row.wholeColumn,
    // If events do not store person properties, they are read from the person.
    readsPerson: (value) =>
      readsColumn(
        value,
        (identity) =>
          identity.startsWith(personPrefix) ||
          (identity === 'person_properties' && !events.columns.has('person_properties')),
      ),
    joins: () => joined.joins(),
    personAlias: () => joined.alias(),
  };
}

const personColumns: ReadonlyMap<string, RowColumn> = new Map<string, RowColumn>([
  ['team_id', { kind: 'integer' }],
  ['distinct_id', { kind: 'string' }],
  ['person_id', { kind: 'uuid' }],
  ['properties', { kind: 'json', nullable: true }],
  ['person_distinct_id_version', { kind: 'integer' }],
  ['person_version', { kind: 'integer', nullable: true }],
  ['created_at', { kind: 'datetime', nullable: true }],
  ['_inserted_at', { kind: 'datetime' }],
  ['is_deleted', { kind: 'boolean' }],
]);

/** Aliases of columns, as in queries. */
const columnAliases: Readonly<Record<string, string>> = { id: 'person_id', version: 'person_version' };

/** One row of an export of persons: a distinct id with its person. */
export function createPersonRow(name: string, access: ColumnAccess): ModelRow {
  const row = new RowColumns(personColumns, access);
  return {
    name,
    field: (requested) => {
      if (requested === 'pdi' || requested === 'is_identified')
        return notExportable(
          `The field ${requested} cannot be exported. Each row has the column distinct_id.`,
        );
      return row.column(columnAliases[requested] ?? requested);
    },
    names: () => [...row.names, ...Object.keys(columnAliases)],
    star: () => row.selectable,
    from: () => sql``,
    wholeColumn: row.wholeColumn,
    readsPerson: () => false,
    joins: () => [],
    personAlias: () => null,
  };
}
