import { postgresType } from '../../dialect/compile/expressions/coerce.ts';
import { column, type Column, type RelationField, type Relation } from '../../dialect/resolve/relation.ts';
import type { Statement } from '../../dialect/resolve/statement.ts';
import { personMappings } from '../../dialect/resolve/tables/persons.ts';
import { columnIdentityOf, everyOperand, type Value } from '../../dialect/resolve/value.ts';
import { TeamRelation } from '../../dialect/resolve/team_relation.ts';
import { rawSql, sql, type Sql } from '../../dialect/sql.ts';
import { scalarType, type ScalarKind } from '../../dialect/types.ts';
import { readableJson } from '../../sql/json_property.ts';
import { jsonColumn } from '../model_query.ts';

/** A column of a model that queries can use. */
export interface RowColumn {
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
export class RowColumns {
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
export class RowPerson {
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
export class MergedPerson {
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
export const readsColumn = (value: Value, holds: (identity: string) => boolean): boolean =>
  !everyOperand(value, (operand) => {
    const identity = columnIdentityOf(operand);
    return identity === undefined || !holds(identity);
  });

/** A field that exists in queries and cannot be exported. */
export const notExportable = (sentence: string): RelationField => ({
  kind: 'unsupported',
  summary: sentence,
  suggestion: null,
});
