import { describe, expect, it } from '@jest/globals';
import { saveDemoState } from '../../src/local_stack/demo/demo_file.ts';
import { requireSameSource } from '../../src/local_stack/stack_environment.ts';
import { temporaryFolder } from './data_folder.ts';

describe.each([
  [false, 'read the demo data'],
  [true, 'read your database'],
])('a data folder whose exports read a database of the user (%s)', (hasOwnSource, message) => {
  const folder = temporaryFolder();

  it('changes its source until it has a project', () => {
    requireSameSource(folder, !hasOwnSource);
    requireSameSource(folder, hasOwnSource);
    saveDemoState(folder, { project_id: 1 });
    requireSameSource(folder, hasOwnSource);
    expect(() => requireSameSource(folder, !hasOwnSource)).toThrow(message);
  });
});
