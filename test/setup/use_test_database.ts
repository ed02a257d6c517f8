import { afterAll, beforeAll } from '@jest/globals';
import { planTestDatabase, type TestDatabase } from './database.ts';

/** Creates a database before the tests of the calling file and drops it after them. Call it outside of hooks and tests. */
export function useTestDatabase(): Omit<TestDatabase, 'drop'> {
  const database = planTestDatabase();
  beforeAll(() => database.create());
  afterAll(() => database.drop());
  return database;
}
