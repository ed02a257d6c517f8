import type { Pool } from '../journal/database.ts';
import { createJournal, type CommitObserver, type Journal } from '../journal/journal.ts';
import { applyToProjections, projectionLock } from './registry.ts';
import {
  findStreamState,
  readStreamState,
  writeStreamState,
  writeStreamVersion,
} from './stream_states/index.ts';

/**
 * Opens the journal of a control database. Its appends fold events into the read models of this folder; `onCommitted`
 * receives them after the commit.
 */
export const openJournal = (pool: Pool, onCommitted?: CommitObserver): Journal =>
  createJournal(
    pool,
    {
      lock: projectionLock,
      apply: applyToProjections,
      findState: findStreamState,
      readState: readStreamState,
      writeState: writeStreamState,
      writeVersion: writeStreamVersion,
    },
    onCommitted,
  );
