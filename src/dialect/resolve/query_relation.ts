import { identifier, sql, type Sql } from '../sql.ts';
import { type Type, withNull } from '../types.ts';
import { type Column, column, type Member, type Relation } from './relation.ts';

/** A query, or anything else with columns `c1`, `c2`, …, under an alias. */
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
    member: (wanted) => {
      const at = columns.findIndex((one) => one.name === wanted);
      const found = columns[at];
      return found === undefined ? undefined : column(sql`${alias}.${identifier(`c${at + 1}`)}`, found.type);
    },
  };
}

/** A query that sorts its rows. They are numbered when that is asked for, since PostgreSQL would forget their order. */
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

/** A relation whose columns are read another way, those of the rows inside it too. */
export function mappedRelation(relation: Relation, map: (column: Column) => Column): Relation {
  const mapped = (member: Member | undefined): Member | undefined => {
    if (member?.kind === 'column') return map(member);
    if (member?.kind !== 'nested') return member;
    const { members } = member;
    return { kind: 'nested', members: { ...members, member: (name) => mapped(members.member(name)) } };
  };
  return {
    name: relation.name,
    from: () => relation.from(),
    names: () => relation.names(),
    star: () => relation.star(),
    member: (name) => mapped(relation.member(name)),
  };
}

/** A column on the side of an outer join that may have no row. */
export const optionalColumn = (one: Column): Column => ({ ...one, type: withNull(one.type) });

/** A relation that says when one of its names is asked for. */
export const watchedRelation = (relation: Relation, asked: () => void): Relation => ({
  ...mappedRelation(relation, (one) => one),
  member: (name) => {
    const member = relation.member(name);
    if (member !== undefined) asked();
    return member;
  },
});
