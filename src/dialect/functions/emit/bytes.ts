import { sql, type Sql } from '../../sql.ts';
import { computeSqlOnce } from '../../compile/compute_once.ts';

/** Decodes UTF-8; invalid bytes yield null. They are checked first, because PostgreSQL would fail. */
export const decodeUtf8 = (bytes: Sql): Sql => {
  const body = (hex: Sql): Sql =>
    sql`(case when ${hex} ~ ${utf8} then convert_from(decode(${hex}, 'hex'), 'UTF8') end)`;
  return computeSqlOnce([sql`encode(${bytes}, 'hex')`], (hex = sql``) => body(hex));
};

const utf8 = sql`'^((0[1-9a-f]|[1-7][0-9a-f])|c[2-9a-f][89ab][0-9a-f]|d[0-9a-f][89ab][0-9a-f]|e0[ab][0-9a-f][89ab][0-9a-f]|ed[89][0-9a-f][89ab][0-9a-f]|e[1-9a-cef]([89ab][0-9a-f]){2}|f0[9ab][0-9a-f]([89ab][0-9a-f]){2}|f[1-3]([89ab][0-9a-f]){3}|f48[0-9a-f]([89ab][0-9a-f]){2})*$'`;
