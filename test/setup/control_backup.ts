import type { Pool } from '../../src/journal/database.ts';

/** Copies the tables of a control database, and returns a function that puts the copy back, like a restored backup. */
export async function backUpControlDatabase(pool: Pool): Promise<() => Promise<void>> {
  // Without generated columns, which PostgreSQL computes again.
  const { rows: tables } = await pool.query<{ name: string; columns: string }>(
    `select relname as name,
       (select string_agg(quote_ident(attname), ', ') from pg_attribute
        where attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns
     from pg_class where relnamespace = 'exportd'::regnamespace and relkind = 'r'`,
  );
  await pool.query(
    [
      'drop schema if exists backup cascade',
      'create schema backup',
      ...tables.map(
        ({ name, columns }) => `create table backup.${name} as select ${columns} from exportd.${name}`,
      ),
    ].join(';'),
  );
  return async () => {
    const restored = tables.map(
      ({ name, columns }) =>
        `insert into exportd.${name} (${columns}) overriding system value select ${columns} from backup.${name}`,
    );
    await pool.query(
      [
        'begin',
        'set local session_replication_role = replica',
        `truncate ${tables.map(({ name }) => `exportd.${name}`).join(', ')} cascade`,
        ...restored,
        sequencesAfterRestore,
        'commit',
      ].join(';'),
    );
  };
}

/** Identity columns continue after the restored rows. */
const sequencesAfterRestore = `
  do $$ declare identity record; begin
    for identity in select table_name, column_name from information_schema.columns
      where table_schema = 'exportd' and is_identity = 'YES'
    loop
      execute format(
        'select setval(pg_get_serial_sequence(%L, %L), (select coalesce(max(%I), 0) + 1 from exportd.%I), false)',
        'exportd.' || identity.table_name, identity.column_name, identity.column_name, identity.table_name);
    end loop;
  end $$`;
