import { joinSql, sql, type Sql } from '../../sql.ts';

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
