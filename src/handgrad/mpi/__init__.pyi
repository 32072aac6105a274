from handgrad.mpi.communicator import Ranks as Ranks
