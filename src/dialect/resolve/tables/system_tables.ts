import type { SourceRelation } from '../../schema.ts';
import { bind, commaList, identifier, rawSql, sql, type Sql } from '../../sql.ts';
import { scalarType, type Kind, type Type } from '../../types.ts';
import { column, queryRelation, type Relation, type RelationFields, TeamRelation } from '../relation.ts';
import type { Statement } from '../statement.ts';

/** A column as a query names it, such as `person.properties`. */
export interface NamedColumn {
  readonly name: string;
  readonly type: Type;
}

/** Rows inside rows: `pdi.person.properties` has two. */
const maxNesting = 2;

/** The columns of a row, and of the rows inside it. */
export const columnsOf = (
  { names, field }: RelationFields,
  path = '',
  nesting = maxNesting,
): readonly NamedColumn[] =>
  names().flatMap((name): readonly NamedColumn[] => {
    const found = field(name);
    const fullName = `${path}${name}`;
    if (found?.kind === 'column') return [{ name: fullName, type: found.type }];
    return found?.kind === 'nested' && nesting > 0
      ? columnsOf(found.fields, `${fullName}.`, nesting - 1)
      : [];
  });

/** What the rows of the information schema describe. */
interface DescribedTable {
  readonly name: string;
  readonly isWarehouse: boolean;
  readonly columns: readonly NamedColumn[];
}

type Cell = string | number | boolean | null;

/** Columns and rows as in PostHog's information_schema.py. What is not known of a table is null. */
interface SystemTable {
  readonly columns: readonly NamedColumn[];
  readonly rowsOf: (table: DescribedTable) => readonly (readonly Cell[])[];
}

const text = (name: string, nullable = false): NamedColumn => ({
  name,
  type: scalarType('string', nullable),
});
const boolean = (name: string): NamedColumn => ({ name, type: scalarType('boolean') });

const systemTables = {
  'system.information_schema.tables': {
    columns: [
      ...['table_catalog', 'table_schema', 'table_name', 'table_type'].map((name) => text(name)),
      text('description', true),
      { name: 'row_count', type: scalarType('integer', true) },
    ],
    rowsOf: (table) => [[table.name, schemaOf(table), table.name, typeOf(table), null, null]],
  },
  'system.information_schema.columns': {
    columns: [
      ...['table_schema', 'table_name', 'column_name'].map((name) => text(name)),
      { name: 'ordinal_position', type: scalarType('integer') },
      text('data_type'),
      ...['is_nullable', 'is_array'].map(boolean),
      text('field_kind'),
      text('description', true),
    ],
    rowsOf: (table) =>
      table.columns.map(({ name, type }, index) => [
        schemaOf(table),
        table.name,
        name,
        index + 1,
        dataTypes[type.kind],
        type.nullable,
        type.kind === 'array',
        'column',
        null,
      ]),
  },
} as const satisfies Readonly<Record<string, SystemTable>>;

const dataTypes: Readonly<Record<Kind, string>> = {
  string: 'String',
  integer: 'Integer',
  float: 'Float',
  decimal: 'Decimal',
  boolean: 'Boolean',
  date: 'Date',
  datetime: 'DateTime',
  uuid: 'UUID',
  json: 'JSON',
  array: 'Array',
  tuple: 'Struct',
  map: 'Struct',
  interval: 'Unknown',
  null: 'Unknown',
};

const informationSchema = 'system.information_schema.';

function schemaOf({ name, isWarehouse }: DescribedTable): string {
  if (isWarehouse) return 'warehouse';
  if (name.startsWith(informationSchema)) return 'information_schema';
  return name.startsWith('system.') ? 'system' : 'public';
}

function typeOf(table: DescribedTable): string {
  const schema = schemaOf(table);
  return { warehouse: 'data_warehouse', public: 'posthog' }[schema] ?? schema;
}

/**
 * A table of the information schema. Its rows are a parameter of the statement, so that it reads nothing of the database.
 * @param tables what the project can read
 */
export function informationSchemaRelation(
  statement: Statement,
  table: keyof typeof systemTables,
  name: string,
  tables: () => readonly DescribedTable[],
): Relation {
  const { columns, rowsOf }: SystemTable = systemTables[table];
  const alias = statement.uniqueName(name);
  const cells = columns.map(({ type }, index) => {
    const cell = sql`(described.cells ->> ${rawSql(String(index))})`;
    const value =
      type.kind === 'integer' ? sql`${cell}::int8` : type.kind === 'boolean' ? sql`${cell}::bool` : cell;
    return sql`${value} as ${identifier(`c${index + 1}`)}`;
  });
  return {
    ...queryRelation(name, sql``, alias, columns),
    from: () =>
      sql`(select ${commaList(cells)} from jsonb_array_elements(${bind(JSON.stringify(tables().flatMap(rowsOf)), 'text')}::jsonb) as described(cells)) as ${alias}`,
  };
}

/** The cohorts that the source stores, with the number of their persons. */
export class CohortsRelation implements Relation {
  readonly name: string;
  readonly #relation: TeamRelation;
  readonly #columns: ReadonlyMap<string, { readonly selected: Sql; readonly type: Type }>;

  constructor(statement: Statement, source: SourceRelation, name: string) {
    this.name = name;
    this.#relation = new TeamRelation(statement, source, name);
    const named = source.columns.has('cohort_name') ? sql`max("cohort_name")` : sql`null::text`;
    this.#columns = new Map([
      ['id', { selected: sql`"cohort_id"`, type: scalarType('integer') }],
      ['name', { selected: named, type: scalarType('string', true) }],
      ['count', { selected: sql`count(distinct "person_id")`, type: scalarType('integer') }],
      ['deleted', { selected: sql`false`, type: scalarType('boolean') }],
    ]);
  }

  readonly field: Relation['field'] = (name) => {
    const found = this.#columns.get(name);
    return found && column(this.#relation.reference(name), found.type);
  };

  readonly names = (): readonly string[] => [...this.#columns.keys()];
  readonly star = (): readonly string[] => this.names();

  readonly from = (): Sql => {
    const selected = [...this.#columns].map(([name, one]) => sql`${one.selected} as ${identifier(name)}`);
    return sql`(${this.#relation.query(selected)} group by "cohort_id") as ${this.#relation.alias}`;
  };
}
