import { ApplicationFailure, setCurrentDetails } from '@temporalio/workflow';
import { isOperatorFault } from '../src/contract/operator_fault.ts';

/**
 * Calls a local activity, and after an operator's fault the same one as an ordinary activity. That one waits for as long as
 * it takes without events in the history: Temporal starts its next attempt.
 */
export const callUntilFixed =
  <Input, Output>(
    local: (input: Input) => Promise<Output>,
    remote: (input: Input) => Promise<Output>,
  ): ((input: Input) => Promise<Output>) =>
  async (input) => {
    try {
      return await local(input);
    } catch (error) {
      if (!(error instanceof ApplicationFailure) || !isOperatorFault(error.details)) throw error;
      setCurrentDetails(`Waiting for the operator: ${error.type ?? 'Error'}: ${error.message}`);
      return remote(input);
    }
  };
