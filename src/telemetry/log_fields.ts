import { AsyncLocalStorage } from 'node:async_hooks';

type Fields = Readonly<Record<string, unknown>>;

const current = new AsyncLocalStorage<Fields>();

/** Runs `work` so that all its log lines have these fields, in addition to those of the surrounding work. */
export const withLogFields = <Result>(fields: Fields, work: () => Result): Result =>
  current.run({ ...current.getStore(), ...fields }, work);

/** The fields of the current work. */
export const currentLogFields = (): Fields | undefined => current.getStore();
