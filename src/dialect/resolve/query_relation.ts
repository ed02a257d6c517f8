import { identifier, sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';
import { column, type Member, type Relation } from './relation.ts';

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

/** A relation on the side of an outer join that may have no row. */
export function optionalRelation(relation: Relation): Relation {
  const optional = (member: Member | undefined): Member | undefined => {
    if (member?.kind === 'column') return { ...member, type: { ...member.type, nullable: true } };
    if (member?.kind !== 'nested') return member;
    const { members } = member;
    return { kind: 'nested', members: { ...members, member: (name) => optional(members.member(name)) } };
  };
  return {
    name: relation.name,
    from: () => relation.from(),
    names: () => relation.names(),
    star: () => relation.star(),
    member: (name) => optional(relation.member(name)),
  };
}
