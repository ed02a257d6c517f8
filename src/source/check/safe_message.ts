import type pg from 'pg';

/**
 * PostgreSQL's message without values of rows. Those of class 42 contain names and types only; others quote values after
 * the first colon, such as `invalid input syntax for type uuid: "…"`.
 */
export const safeMessage = ({ message, code }: pg.DatabaseError): string =>
  code?.startsWith('42') ? message : (/^[^:"]*[^:"\s]/.exec(message)?.[0] ?? 'no message');
