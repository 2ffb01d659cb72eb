"""Routes of simulations: an experiment's design under assumed expected rewards, simulated in the background."""

from typing import Annotated

from fastapi import APIRouter, Path

from doublesampling.delays import check_delay
from doublesampling.service.access import Reader, State
from doublesampling.service.problems import RefusedError
from doublesampling.service.schemas.simulations import Simulation, SimulationRequest
from doublesampling.service.simulations import find_simulation, simulation_view
from doublesampling.service.simulations import start_simulation as start

router = APIRouter(prefix="/v1/experiments/{name}/what-if", tags=["simulations"])
SimulationId = Annotated[str, Path(alias="id", max_length=100)]
_STEPS = 50_000_000  # decisions in one simulation
_OWN_STEPS = 500_000  # the same for policies of one's own, which are played in Python


@router.post("", status_code=202)
async def start_simulation(state: State, caller: Reader, name: str, body: SimulationRequest) -> Simulation:
    """Start a simulation. Read its progress and result by its id, from any server of the store."""
    experiment = await state.experiment(name)
    design = await state.read(lambda: experiment.current_design)
    design.check_truth(body.truth)
    check_delay(body.assumed_delay)
    horizon = body.horizon or design.usual_horizon
    if design.stopping is not None:
        design.stopping.check_for(design.arms, horizon)
    most = _OWN_STEPS if design.has_own_classes else _STEPS
    if body.realizations * horizon > most:
        raise RefusedError("setting", f"realizations x horizon may be {most} at most. Use fewer realizations.")
    return simulation_view(await state.write(start, state, name, design, body, caller.actor))


@router.get("/{id}")
async def show_simulation(state: State, caller: Reader, name: str, which: SimulationId) -> Simulation:
    """Read the progress of a simulation and its result so far."""
    return simulation_view(await state.read(find_simulation, state, name, which))


@router.delete("/{id}")
async def stop_simulation(state: State, caller: Reader, name: str, which: SimulationId) -> Simulation:
    """Stop a simulation; its result so far is kept."""
    return simulation_view(await state.write(state.simulation_jobs.stop, name, which))
