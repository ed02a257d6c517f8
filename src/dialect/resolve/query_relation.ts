import { identifier, sql, type Sql } from '../sql.ts';
import { type Type, withNull } from '../types.ts';
import { type Column, column, type RelationField, type RelationFields, type Relation } from './relation.ts';

/** A relation over a query, or anything with columns `c1`, `c2`, …, under an alias. */
export function queryRelation(
  name: string | null,
  from: Sql,
  alias: Sql,
  columns: readonly { readonly name: string; readonly type: Type }[],
): Relation {
  return {
    name,
    from: () => from,
    names: () => columns.map((one) => one.name),
    star: () => columns.map((one) => one.name),
    field: (requested) => {
      const at = columns.findIndex((one) => one.name === requested);
      const found = columns[at];
      return found === undefined ? undefined : column(sql`${alias}.${identifier(`c${at + 1}`)}`, found.type);
    },
  };
}

/**
 * A relation over a sorted query. Rows are numbered only if `ordinal` is used, because PostgreSQL does not keep the
 * order of a subquery.
 */
export function sortedRelation(
  name: string | null,
  rows: Sql,
  alias: Sql,
  columns: readonly { readonly name: string; readonly type: Type }[],
): Relation {
  const ordinal = identifier('ordinal');
  let isNumbered = false;
  return {
    ...queryRelation(name, rows, alias, columns),
    from: () =>
      isNumbered
        ? sql`(select *, row_number() over () as ${ordinal} from ${rows} as ${alias}) as ${alias}`
        : sql`${rows} as ${alias}`,
    ordinal: () => {
      isNumbered = true;
      return sql`${alias}.${ordinal}`;
    },
  };
}

/** A relation with all columns mapped, including those of nested rows. */
export function mappedRelation(relation: Relation, map: (column: Column) => Column): Relation {
  const mapped = (field: RelationField | undefined): RelationField | undefined => {
    if (field?.kind === 'column') return map(field);
    if (field?.kind !== 'nested') return field;
    const { fields } = field;
    return { kind: 'nested', fields: { ...fields, field: (name) => mapped(fields.field(name)) } };
  };
  return {
    name: relation.name,
    from: () => relation.from(),
    names: () => relation.names(),
    star: () => relation.star(),
    field: (name) => mapped(relation.field(name)),
  };
}

/**
 * A relation whose columns have an identity: the number of the relation and the path of the column. Each is resolved
 * once.
 */
export function identifiedRelation(relation: Relation, number: number): Relation {
  const { name, from, ordinal, pushdownTargets, lookupTargets } = relation;
  return {
    name,
    from,
    ...(ordinal && { ordinal }),
    ...(pushdownTargets && { pushdownTargets }),
    ...(lookupTargets && { lookupTargets }),
    ...identifiedFields(relation, `${number}.`),
  };
}

function identifiedFields(fields: RelationFields, prefix: string): RelationFields {
  const resolved = new Map<string, RelationField>();
  return {
    names: () => fields.names(),
    star: () => fields.star(),
    field: (name) => {
      const known = resolved.get(name);
      if (known !== undefined) return known;
      const field = fields.field(name);
      if (field === undefined) return undefined;
      const identified = identifiedField(field, `${prefix}${name}`);
      resolved.set(name, identified);
      return identified;
    },
  };
}

function identifiedField(field: RelationField, identity: string): RelationField {
  if (field.kind === 'column') return { ...field, identity };
  return field.kind === 'nested'
    ? { kind: 'nested', fields: identifiedFields(field.fields, `${identity}.`) }
    : field;
}

/** A column on the nullable side of an outer join. */
export const optionalColumn = (one: Column): Column => ({ ...one, type: withNull(one.type) });

/** A relation that calls `onRead` when one of its fields is used. */
export const observedRelation = (relation: Relation, onRead: () => void): Relation => ({
  ...mappedRelation(relation, (one) => one),
  field: (name) => {
    const field = relation.field(name);
    if (field !== undefined) onRead();
    return field;
  },
});
