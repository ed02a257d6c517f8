import { postgresType } from '../../dialect/compile/json_values.ts';
import { column, type Column, type RelationField, type Relation } from '../../dialect/resolve/relation.ts';
import type { Statement } from '../../dialect/resolve/statement.ts';
import { TeamRelation } from '../../dialect/resolve/team_relation.ts';
import { rawSql, sql, type Sql } from '../../dialect/sql.ts';
import { scalar, type ScalarKind } from '../../dialect/types.ts';
import { readableJson } from '../../sql/json_property.ts';
import { jsonColumn } from '../model_query.ts';

/** A column of a model, as queries may use it. */
export interface RowColumn {
  readonly kind: ScalarKind;
  readonly nullable?: boolean;
  /** Not a part of `*`. */
  readonly hidden?: boolean;
}

/** How a statement names the columns of the rows that it reads. */
export interface RowPlace {
  /** A column as SQL. */
  readonly sql: (column: string) => string;
  /** The type of a column of JSON in PostgreSQL. */
  readonly jsonType: (column: string) => string | undefined;
}

/** The row of an export, of which a query chooses columns. */
export interface ModelRow extends Relation {
  /** The model's column that an expression is, as it is: `properties`, but not `properties.plan`. */
  readonly plainColumn: (expression: Sql) => { readonly name: string; readonly sql: Sql } | undefined;
  /** Whether an expression is of the person as it is when the row is read. */
  readonly readsPerson: (expression: Sql) => boolean;
  /** What stands behind the relation in FROM, once all names have been asked for. */
  readonly joins: () => readonly Sql[];
}

/** The columns of a row, each readable whatever it holds. */
export class RowColumns {
  readonly #columns: ReadonlyMap<string, RowColumn>;
  readonly #place: RowPlace;
  readonly #asked = new Map<string, string>();

  constructor(columns: ReadonlyMap<string, RowColumn>, place: RowPlace) {
    this.#columns = columns;
    this.#place = place;
  }

  column(name: string): Column | undefined {
    const known = this.#columns.get(name);
    if (known === undefined) return undefined;
    const type = scalar(known.kind, known.nullable);
    const read =
      known.kind === 'json'
        ? this.#readable(name)
        : sql`${rawSql(this.#place.sql(name))}::${postgresType(type)}`;
    this.#asked.set(read.key, name);
    return column(read, type);
  }

  get names(): readonly string[] {
    return [...this.#columns.keys()];
  }

  get shown(): readonly string[] {
    return this.names.filter((name) => this.#columns.get(name)?.hidden !== true);
  }

  readonly plainColumn: ModelRow['plainColumn'] = (expression) => {
    const name = this.#asked.get(expression.key);
    if (name === undefined) return undefined;
    const isJson = this.#columns.get(name)?.kind === 'json';
    const { sql: placed, jsonType } = this.#place;
    return { name, sql: isJson ? rawSql(jsonColumn(placed(name), jsonType(name))) : expression };
  };

  #readable(name: string): Sql {
    const [document, type] = [this.#place.sql(name), this.#place.jsonType(name)];
    if (type === 'jsonb') return rawSql(document);
    return rawSql(readableJson(type === 'json' ? document : `(${document})::json`));
  }
}

/**
 * The person of a row, as it is when the row is read. At most one row is looked up for each, so that whatever the
 * relation holds, no row is lost or doubled.
 */
export class PersonOfRow {
  readonly #person: TeamRelation;
  readonly #alias: Sql;
  readonly #id: Sql;
  readonly #wanted = new Map<string, Sql>();

  constructor(statement: Statement, id: Sql) {
    this.#person = new TeamRelation(statement, statement.project.schema.persons, 'person', {
      teamColumn: 'team_id',
      conditions: [sql`not is_deleted`],
    });
    this.#alias = statement.uniqueName('person_of_row');
    this.#id = id;
  }

  column(name: 'properties' | 'created_at'): Sql {
    this.#wanted.set(name, this.#person.column(name));
    return sql`${this.#alias}.${rawSql(`"${name}"`)}`;
  }

  isIn(expression: Sql): boolean {
    return expression.key.includes(`${this.#alias.key}.`);
  }

  joins(): readonly Sql[] {
    if (this.#wanted.size === 0) return [];
    const id = this.#person.column('id');
    const [first, ...others] = this.#wanted.values();
    const selected = others.reduce((list, one) => sql`${list}, ${one}`, first ?? sql``);
    return [
      sql` left join lateral (select ${selected} from ${this.#person.from()} where ${id} = ${this.#id} limit 1) as ${this.#alias} on true`,
    ];
  }
}

/** A name that is known of the model elsewhere and that an export cannot have. */
export const notExported = (sentence: string): RelationField => ({
  kind: 'refused',
  summary: sentence,
  suggestion: null,
});
